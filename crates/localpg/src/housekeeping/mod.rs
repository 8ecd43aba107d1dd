//! Directories, accounts and processes of servers, and the removal of what killed processes left behind.

pub(crate) mod account;
pub(crate) mod home;
pub(crate) mod process;
pub(crate) mod shared_memory;
pub(crate) mod sweep;
