# Sourced by each peer's script: where to install peers, and which sawmill measures them.
# shellcheck shell=bash
set -euo pipefail

# The folder of the calling script.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
specs=$root/scripts/peers/specs
# One private folder holds everything that peers need: environments, data, results.
peers=${SAWMILL_PEERS:-$root/target/peers}
sawmill=${SAWMILL:-$root/target/dist/sawmill}
runs=${SAWMILL_RUNS:-5}
warmup=${SAWMILL_WARMUP:-1}
mkdir -p "$peers/data" "$peers/results"

# Reports in one line why the peer is not available here, and exits with code 3.
unavailable() {
  echo "not available: $*" >&2
  exit 3
}

# venv NAME PACKAGE...: a Python environment with these packages from PyPI.
venv() {
  local folder="$peers/$1" packages="${*:2}"
  if [ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ]; then
    command -v python3 >/dev/null || unavailable "python3 is missing"
    rm -rf "$folder"
    python3 -m venv "$folder" || unavailable "python3 -m venv failed"
    "$folder/bin/pip" install --quiet --disable-pip-version-check ${packages} ||
      unavailable "pip could not install $packages"
    echo "$packages" >"$folder/packages"
  fi
}

# make_data NAME SPEC OPTIONS...: a dataset as Parquet files, generated once for each set of options.
make_data() {
  local folder="$peers/data/$1" options="${*:2}"
  if [ "$(cat "$folder.options" 2>/dev/null)" != "$options" ]; then
    rm -rf "$folder" "$folder".*  # and the files that peers derived from it
    "$sawmill" gen "${@:2}" --out "$folder" --quiet >/dev/null
    echo "$options" >"$folder.options"
  fi
}

# The files of the loading benchmarks, their size, and the spec of their rows: trips, or another, such as
# fixtures/lineitem.toml.
load_rows=${SAWMILL_LOAD_ROWS:-1000000}
load_spec=${SAWMILL_LOAD_SPEC:-$specs/trips.toml}
load_name="$(basename "$load_spec" .toml)-$load_rows"
trips="$peers/data/$load_name"
trips_data() { make_data "$load_name" "$load_spec" --rows "$load_rows" --files 4; }

# bench_load NAME: compares loads with `run` of the calling script.
bench_load() {
  trips_data
  "$sawmill" bench load "$trips" --connections "${SAWMILL_DEGREE:-2}" --runs "$runs" --warmup "$warmup" \
    --against "$1=$0 run" --json-file "$peers/results/load-$(basename "$0").json" "${@:2}"
}

# The wide files whose footers are read.
wide="$peers/data/wide"
wide_data() {
  local spec="$peers/data/spec-of-wide.toml"
  {
    echo 'name = "wide"'
    for ((column = 0; column < 1000; column++)); do
      printf '[[fields]]\nname = "c%d"\ntype = "double"\nvalues = { uniform = { min = 0, max = 1000 } }\n' "$column"
    done
  } >"$spec"
  make_data wide "$spec" --rows "${SAWMILL_FOOTER_ROWS:-8000}" --files "${SAWMILL_FOOTER_FILES:-20}" \
    --row-group-rows "${SAWMILL_FOOTER_GROUP:-20}"
}

bench_footer() {
  wide_data
  "$sawmill" bench footer "$wide" --runs "$runs" --warmup "$warmup" \
    --against "$1=$0 run" --json-file "$peers/results/footer-$(basename "$0").json" "${@:2}"
}

# Finds PostgreSQL's client.
find_psql() {
  psql=$(command -v psql || ls -d /usr/lib/postgresql/*/bin/psql 2>/dev/null | sort -V | tail -1 || true)
  [ -n "$psql" ] || unavailable "psql is missing"
}
