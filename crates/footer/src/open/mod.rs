//! Opens files and reads their footers, one or many at a time.

#[cfg(feature = "async")]
pub(crate) mod asynchronous;
pub(crate) mod buffer;
pub(crate) mod directory;
#[cfg_attr(
    not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))),
    path = "ends_elsewhere.rs"
)]
pub(crate) mod ends;
pub(crate) mod many;
#[cfg(all(unix, target_pointer_width = "64"))]
pub(crate) mod mapped;
pub(crate) mod opener;
pub(crate) mod request;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) mod ring;
pub(crate) mod source;
pub(crate) mod tail;
