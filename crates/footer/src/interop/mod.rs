//! Conversion to and from the `parquet` crate's metadata: the same source for each version of the crate
//! (features `parquet-59` and `parquet-60`).

pub(crate) mod kept;
mod repaired;
#[cfg(feature = "parquet-59")]
mod version_59;
#[cfg(all(feature = "page-checksums", feature = "parquet-59"))]
pub use version_59::page_limits_59;
#[cfg(feature = "parquet-59")]
pub use version_59::{annotated_59, enums_as_text_59};
#[cfg(feature = "parquet-60")]
#[allow(clippy::duplicate_mod, reason = "the same source, compiled for another version of the crate")]
mod version_60;
