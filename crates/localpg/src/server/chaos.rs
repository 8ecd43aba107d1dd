//! A server that is killed or stopped on purpose, for tests of what survives that.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::housekeeping::process::residents;
use crate::{Error, LocalPg};

/// How long killed processes may take to be gone.
const GONE: Duration = Duration::from_secs(10);

impl LocalPg {
    /// Kills all processes of the server at once (SIGKILL), so that nothing in its memory is written any more,
    /// and restarts it on the same port and data.
    ///
    /// # Errors
    ///
    /// As for [`restart_immediate`](Self::restart_immediate).
    pub fn kill_and_restart(&mut self) -> Result<(), Error> {
        self.signal_all(libc::SIGKILL).map_err(|cause| Error::io("cannot kill the server", cause))?;
        let end = Instant::now() + GONE;
        // The postmaster stays listed until it is waited for, which the restart does.
        while self.processes().iter().any(|pid| *pid != self.pid()) && Instant::now() < end {
            self.signal_all(libc::SIGKILL).map_err(|cause| Error::io("cannot kill the server", cause))?;
            sleep(Duration::from_millis(2));
        }
        self.restart_immediate()
    }

    /// Stops all processes of the server (SIGSTOP): it answers nothing until [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// The processes cannot be signalled.
    pub fn pause(&self) -> Result<(), Error> {
        self.signal_all(libc::SIGSTOP).map_err(|cause| Error::io("cannot stop the server", cause))
    }

    /// Lets a stopped server go on.
    ///
    /// # Errors
    ///
    /// The processes cannot be signalled.
    pub fn resume(&self) -> Result<(), Error> {
        self.signal_all(libc::SIGCONT).map_err(|cause| Error::io("cannot resume the server", cause))
    }

    /// The postmaster first, so that it starts no others.
    fn processes(&self) -> Vec<u32> {
        let home = &self.home.path;
        let owner = std::fs::metadata(&self.home.data).map_or(0, |data| data.uid());
        let mut all = residents(home, owner);
        all.sort_by_key(|pid| *pid != self.pid());
        all
    }

    fn signal_all(&self, number: libc::c_int) -> io::Result<()> {
        for pid in self.processes() {
            let Some(pid) = libc::pid_t::try_from(pid).ok().filter(|pid| *pid > 0) else { continue };
            // SAFETY: kill touches no memory; the processes are this server's: they work in its directory.
            if unsafe { libc::kill(pid, number) } != 0 {
                let error = io::Error::last_os_error();
                if error.raw_os_error() != Some(libc::ESRCH) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
