//! Reads small files of `/proc` (`proc(5)`) without allocating.

use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Time that a thread was ready to run but did not get a processor: the second number of
/// `/proc/<pid>/task/<tid>/schedstat`; `None` if the kernel does not count it.
pub(crate) fn ready_time(path: &str) -> Option<Duration> {
    let numbers = with_text(path, |text| {
        let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    })?;
    // A kernel without these statistics shows zeros.
    numbers.filter(|(ran, ready)| (*ran, *ready) != (0, 0)).map(|(_, ready)| Duration::from_nanos(ready))
}

/// A kB value of `/proc/<pid>/status`, in bytes.
pub(crate) fn status_bytes(path: &str, key: &str) -> Option<u64> {
    with_text(path, |text| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    })?
}

/// Reads a small file of `/proc` onto the stack: one read returns all of it.
pub(crate) fn with_text<T>(path: &str, read: impl FnOnce(&str) -> T) -> Option<T> {
    let mut bytes = [0u8; 4096];
    let mut file = File::open(path).ok()?;
    let mut length = 0;
    loop {
        match file.read(bytes.get_mut(length..)?) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    // Names can be any bytes; only the numbers after them matter.
    let text = String::from_utf8_lossy(bytes.get(..length)?);
    Some(read(&text))
}

/// The numeric names in a directory: processes in `/proc`, threads in a `task`.
pub(crate) fn numbered(path: &str) -> Vec<u32> {
    let listed = std::fs::read_dir(path).ok();
    listed.into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}
