//! Devices, pipes and terminals: a command that is asked to stop does not wait for their other end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use crate::confinement::open_input;

/// How often a wait looks at the flag.
const LOOK: Duration = Duration::from_millis(50);
/// The most bytes of a file that is held whole, and of one with a secret, certificates or settings.
const MAX_BYTES: u64 = 256 << 20;
const MAX_SMALL: u64 = 16 << 20;

/// Set once the process is asked to stop.
static STOPPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Whether a wait ended for that reason.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Lets this flag end waits for the other end of a pipe. The first flag of the process counts.
pub fn ends_waits(stopped: &Arc<AtomicBool>) {
    let _ = STOPPED.set(Arc::clone(stopped));
}

/// Whether the flag has ended a wait, whose error is then not a fault of the file.
pub fn has_ended_a_wait() -> bool {
    ENDED.load(Relaxed)
}

/// Whether a device, a pipe or a terminal has this name, which can be written to but not replaced.
pub fn is_stream(path: &Path) -> bool {
    path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// Opens a regular file. Anything else may have no end, and may keep its reader waiting.
///
/// # Errors
/// It cannot be opened, or is a pipe or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    opened_unless_stream(path, |path| File::open(path))
}

/// Opens a regular file as [`open_regular`] does, in the folder that inputs are confined to.
///
/// # Errors
/// As for [`open_regular`]; or it is outside of the folder.
pub fn open_regular_input(path: &Path) -> io::Result<File> {
    opened_unless_stream(path, open_input)
}

fn opened_unless_stream(path: &Path, open: impl FnOnce(&Path) -> io::Result<File>) -> io::Result<File> {
    match is_stream(path) {
        true => Err(io::Error::other("it is a pipe or a device: a regular file is needed")),
        false => open(path),
    }
}

/// Reads a file of at most 256 MiB.
///
/// # Errors
/// It cannot be read, is longer, or the process is asked to stop while a pipe has no writer.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, MAX_BYTES)
}

/// Reads a file of at most 16 MiB: a key, a password, certificates, settings.
///
/// # Errors
/// As for [`read`].
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, MAX_SMALL)
}

fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let start = move |path: &Path| {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let pipe = path.to_owned();
    let bytes = if is_stream(path) { unless_stopped(move || start(&pipe)) } else { start(path) }?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// Reads a text, as [`read`] does.
///
/// # Errors
/// As for [`read`]; or the file is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path)?).map_err(invalid)
}

/// Runs work that may wait for ever, on another thread. Leaves that thread behind once the process is asked to stop.
///
/// # Errors
/// `work` fails, or the process is asked to stop.
pub fn unless_stopped<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (send, done) = bounded(1);
    let is_stopped = || STOPPED.get().is_some_and(|flag| flag.load(Relaxed));
    // Work that starts after the signal, such as writing results, is waited for.
    let was_stopped = is_stopped();
    thread::Builder::new().name("pipe".to_owned()).spawn(move || send.send(work()))?;
    loop {
        match done.recv_timeout(LOOK) {
            Ok(made) => return made,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("its thread ended")),
            Err(RecvTimeoutError::Timeout) if was_stopped || !is_stopped() => {}
            Err(RecvTimeoutError::Timeout) => {
                ENDED.store(true, Relaxed);
                return Err(io::Error::other("interrupted"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_is_read_to_its_end_and_nothing_waits_for_its_writer_after_a_signal() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(open_regular(&pipe).unwrap_err().to_string().contains("regular file"));
        let writer = thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "rows").unwrap()
        });
        assert_eq!(read_text(&pipe).unwrap(), "rows");
        writer.join().unwrap();
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("256 MiB"));
        assert!(read_small(Path::new("/dev/zero")).unwrap_err().to_string().contains("more than 16 MiB"));
    }
}
