#!/bin/sh
# Installs the command `sawmill` from the archive of a release, if its checksum is right.
#
#   sh install.sh                     into ~/.local: bin, and share with manual pages and completions
#   sh install.sh --to /usr/local     elsewhere
#   sh install.sh --from URL          archives of a mirror, also file:///folder
#
# `scripts/release pack` puts the version and the address in.
set -eu
version=@version@
from=@repository@/releases/download/v$version
to=$HOME/.local
while [ $# -gt 0 ]; do
  case $1 in
  --to) to=${2:?a folder} && shift 2 ;;
  --from) from=${2:?an address} && shift 2 ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
  esac
done
case $(uname -s)-$(uname -m) in
Linux-x86_64) target=x86_64-unknown-linux-gnu ;;
Linux-aarch64) target=aarch64-unknown-linux-gnu ;;
Darwin-arm64) target=aarch64-apple-darwin ;;
*)
  echo "no archive is made for $(uname -s) on $(uname -m): cargo install sawmill --features full builds it" >&2
  exit 1
  ;;
esac
name=sawmill-v$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$name.tar.gz" "$name.tar.gz.sha256"; do
  curl --fail --silent --show-error --location --output "$work/$file" "$from/$file"
done
cd "$work"
if command -v sha256sum >/dev/null; then sum=$(sha256sum "$name.tar.gz"); else sum=$(shasum -a 256 "$name.tar.gz"); fi
if [ "${sum%% *}" != "$(cut -d' ' -f1 "$name.tar.gz.sha256")" ]; then
  echo "$from/$name.tar.gz has another checksum than its release: nothing was installed" >&2
  exit 1
fi
tar -xzf "$name.tar.gz"
share=$to/share
mkdir -p "$to/bin"
# Files in the temporary folder may not be allowed to run.
cp "$name/sawmill" "$to/bin/sawmill.new"
"$to/bin/sawmill.new" --version >/dev/null || {
  rm "$to/bin/sawmill.new"
  echo "$name does not run on this system: nothing was installed" >&2
  exit 1
}
mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" \
  "$share/fish/vendor_completions.d"
cp "$name"/man/*.1 "$share/man/man1"
cp "$name/completions/sawmill.bash" "$share/bash-completion/completions/sawmill"
cp "$name/completions/sawmill.zsh" "$share/zsh/site-functions/_sawmill"
cp "$name/completions/sawmill.fish" "$share/fish/vendor_completions.d/sawmill.fish"
# Renamed, so that a running command keeps its file.
mv "$to/bin/sawmill.new" "$to/bin/sawmill"
echo "$to/bin/sawmill: $("$to/bin/sawmill" --version)"
case :$PATH: in
*":$to/bin:"*) ;;
*) echo "add $to/bin to PATH" ;;
esac
