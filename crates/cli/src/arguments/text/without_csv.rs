//! A build without the feature `csv`: delimited text is an error that says how to get it.

use std::convert::Infallible;

use sawmill_store::Location;

use super::TextKind;
use crate::error::Error;

/// Delimited text cannot be read.
#[cfg_attr(feature = "csv", allow(dead_code, reason = "its test alone calls it"))]
pub(crate) fn open(places: &[Location], _: TextKind) -> Result<Infallible, Error> {
    Err(Error::not_built(places.first().map(ToString::to_string).unwrap_or_default(), "csv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_csv_says_how_to_get_it() {
        let error = open(&[Location::Path("trips.csv".into())], TextKind::Delimited).unwrap_err().to_string();
        for part in ["trips.csv", "the feature csv", "--features full"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
