//! Where bytes are: at a path of this machine, or at the URL of an object in a store.

mod object_url;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind};
pub use object_url::{ObjectUrl, Scheme};

/// Where bytes are. `Display` shows it as the user wrote it, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A path of this machine.
    Path(PathBuf),
    /// An object in a store, or all objects whose names start so.
    Object(ObjectUrl),
}

impl Location {
    /// Reads a path, or a URL of the schemes `file`, `s3`, `gs`, `az`, `abfss`, `http` and `https`. An
    /// existing file with the name of a URL is that file.
    ///
    /// # Errors
    ///
    /// A URL with another scheme, without a bucket or host, or with a password.
    pub fn new(path: &Path) -> Result<Self, Error> {
        let here = || Ok(Self::Path(path.to_owned()));
        let text = path.to_str().unwrap_or_default();
        let Some((scheme, rest)) = text.split_once("://") else {
            let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
            let is_known = Scheme::named(scheme).is_some() || scheme.eq_ignore_ascii_case("file");
            return match is_known && path.symlink_metadata().is_err() {
                // The rest may contain a password.
                true => Err(Error::new(Kind::Usage, "a URL has two slashes after its scheme")
                    .at(format!("{scheme}:..."))
                    .advise(format!("write {scheme}://..., or ./{scheme}:... for a path of this machine"))),
                false => here(),
            };
        };
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_scheme || path.symlink_metadata().is_ok() {
            return here();
        }
        match Scheme::named(scheme) {
            Some(known) => ObjectUrl::parse(scheme, known, rest).map(Self::Object),
            None if scheme.eq_ignore_ascii_case("file") => local(rest).map(Self::Path),
            None => Err(Error::new(Kind::Usage, format!("files cannot be read from {scheme}://"))
                .at(format!("{scheme}://..."))
                .advise("give a path, or a URL with file, s3, gs, az, abfss, http or https")),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Object(url) => url.fmt(f),
        }
    }
}

/// The path that follows `file://`.
fn local(rest: &str) -> Result<PathBuf, Error> {
    let wrong = |what: &str| {
        Err(Error::new(Kind::Usage, what)
            .at(format!("file://{rest}"))
            .advise("write file:///home/me/a.parquet"))
    };
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    if !path.starts_with('/') {
        return wrong("a file URL must contain an absolute path");
    }
    match percent_decoded(path) {
        Some(path) => Ok(PathBuf::from(path)),
        None => wrong("the URL is not percent-encoded UTF-8"),
    }
}

/// Returns the text with each `%41` replaced by its byte; `None` if that is not UTF-8.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        match code {
            Some(code) => {
                bytes.push(u8::from_str_radix(code, 16).ok()?);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Location, Error> {
        Location::new(Path::new(text))
    }

    #[test]
    fn paths_and_file_urls_are_on_this_machine() {
        assert_eq!(parsed("a/b.parquet"), Ok(Location::Path("a/b.parquet".into())));
        assert_eq!(parsed("file:///a/b%20c.parquet"), Ok(Location::Path("/a/b c.parquet".into())));
        assert_eq!(parsed("a b://c"), Ok(Location::Path("a b://c".into())));
        assert!(parsed("file://a/b").unwrap_err().to_string().contains("absolute path"));
        assert!(parsed("file:///a%ff").is_err());
    }

    #[test]
    fn urls_name_a_store_and_an_object() {
        for (text, scheme, authority, key) in [
            ("s3://bucket/a/b c.parquet", Scheme::S3, "bucket", "a/b c.parquet"),
            ("s3a://bucket", Scheme::S3, "bucket", ""),
            ("gs://bucket/", Scheme::Gcs, "bucket", ""),
            ("az://container/x/", Scheme::Azure, "container", "x/"),
            (
                "abfss://c@account.dfs.core.windows.net/x",
                Scheme::Azure,
                "c@account.dfs.core.windows.net",
                "x",
            ),
            ("HTTPS://host:8443/x.parquet", Scheme::Https, "host:8443", "x.parquet"),
        ] {
            let Ok(Location::Object(url)) = parsed(text) else { panic!("{text}") };
            assert_eq!((url.scheme(), url.authority(), url.key()), (scheme, authority, key), "{text}");
        }
    }

    #[test]
    fn a_secret_in_a_url_is_neither_shown_nor_debugged() {
        let location = parsed("https://host/x.parquet?X-Amz-Signature=SECRET").unwrap();
        assert_eq!(location.to_string(), "https://host/x.parquet");
        assert!(!format!("{location:?}").contains("SECRET"));
        for refused in ["https://me:SECRET@host/x", "s3://KEY:SECRET@bucket/x", "ftp://me:SECRET@host/x"] {
            let error = parsed(refused).unwrap_err();
            assert!(!format!("{error:?} {error}").contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn other_schemes_and_urls_without_a_store_are_errors() {
        for text in ["ftp://host/x", "s3:///x", "http://", "az:///x"] {
            assert_eq!(parsed(text).unwrap_err().kind(), Kind::Usage, "{text}");
        }
        for text in ["s3:bucket/x", "S3A:/bucket/x", "https:/me:SECRET@host/x", "file:x"] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.contains("two slashes") && !error.contains("SECRET"), "{error}");
        }
        assert_eq!(parsed("./s3:bucket/x"), Ok(Location::Path("./s3:bucket/x".into())));
    }

    #[test]
    fn a_name_with_an_empty_part_is_an_error_and_never_that_of_another_object() {
        for text in ["s3://b//x", "s3://b/in//x", "gs://b/in/x//", "az://c//"] {
            assert!(parsed(text).unwrap_err().to_string().contains("an empty part"), "{text}");
        }
        assert!(parsed("https://host/a//b").is_ok());
    }

    #[test]
    fn objects_are_the_same_whatever_their_spelling() {
        let url = |text: &str| match parsed(text) {
            Ok(Location::Object(url)) => url,
            other => panic!("{text}: {other:?}"),
        };
        for (one, other, same) in [
            ("s3://b/in/x", "S3A://b/in/x", true),
            ("s3://b/in/x", "s3://b/in/x/", true),
            ("gs://b/x", "gcs://b/x", true),
            ("az://c/x", "azure://c/x", true),
            ("az://c/x", "abfss://c@account.dfs.core.windows.net/x", true),
            ("abfs://c@one.dfs.core.windows.net/x", "abfss://c@ONE.blob.core.windows.net/x", true),
            ("abfss://c@one.dfs.core.windows.net/x", "abfss://c@two.dfs.core.windows.net/x", false),
            ("s3://b/in/x", "s3://b/in/y", false),
            ("s3://b/x", "gs://b/x", false),
            ("s3://b/x", "s3://c/x", false),
        ] {
            assert_eq!(url(one).is_same(&url(other)), same, "{one} {other}");
        }
        assert!(url("s3a://b/in/y/x").is_below(&url("s3://b/in/")));
        assert!(url("s3://b/x").is_below(&url("s3://b")));
        for other in ["s3://b/in", "s3://b/i", "s3://c/in/x", "gs://b/in/x"] {
            assert!(!url(other).is_below(&url("s3://b/in")), "{other}");
        }
    }
}
