//! Opens files and reads their footers, one or many at a time.

#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod buffer;
#[cfg_attr(
    not(all(feature = "fast", target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "ends_elsewhere.rs"
)]
pub(crate) mod ends;
pub(crate) mod many;
pub(crate) mod opener;
pub(crate) mod request;
#[cfg(all(feature = "fast", target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod ring;
pub(crate) mod source;
pub(crate) mod tail;
