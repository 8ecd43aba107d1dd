//! Several processes that load the parts of one load at the same time.
//!
//! Each process holds the load's lock together with the others, and the lock of its part alone. A run of the whole
//! load, or one that finishes it, needs the load's lock alone. All these locks end with the connection that holds
//! them. While a process finds or creates the table, it also holds a lock that keeps the others from doing so.

use std::time::{Duration, Instant};

use sawmill_loader::{Part, Share};
use sawmill_source::Result;

use crate::records::checkpoint::{PATIENCE, Records, advisory_key};

/// How long to wait before the first message that a lock is not free.
const SILENT: Duration = Duration::from_secs(2);

const LOCK: &str = "SELECT pg_try_advisory_lock($1)";
const LOCK_SHARED: &str = "SELECT pg_try_advisory_lock_shared($1)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1)";

impl Records<'_> {
    /// Takes the locks that a run of this share of a load needs to begin, for as long as the connection lives. A run
    /// of a part waits until another process that loads the same part has ended, and keeps other parts from looking
    /// for the table until [`begun`](Self::begun).
    ///
    /// # Errors
    /// A run that needs the load for itself, or another part if this run does; transactions of an earlier run.
    pub(crate) fn lock_to_begin(&self, id: &str, share: Share) -> Result<()> {
        let Share::Part(part) = share else {
            self.lock(id)?;
            return self.outlast_writers(id);
        };
        let own = lock_of(id, part);
        self.wait(&own, &format!("part {part}"))?;
        self.outlast_writers(&own)?;
        self.wait(&beginning_of(id), "the begin of the load")?;
        self.lock_shared(id)
    }

    /// Returns when no transaction of an earlier run can commit units any more: the server finishes a commit although its
    /// client was killed. What the records say afterwards stays as it is.
    fn outlast_writers(&self, id: &str) -> Result<()> {
        // Outside of a transaction, the lock ends with the statement.
        let lock = "SELECT pg_try_advisory_xact_lock($1)";
        if self.wait_for_lock(lock, &writers_of(id), Instant::now() + PATIENCE)? {
            Ok(())
        } else {
            let what = "the server still commits rows of an earlier run of this load";
            Err(self.busy(what, "see pg_stat_activity; when it has ended, run the same command again"))
        }
    }

    /// Takes the same locks on another connection, after the first one was lost.
    ///
    /// # Errors
    /// As of [`lock_to_begin`](Self::lock_to_begin).
    pub(crate) fn lock_again(&self, id: &str, share: Share) -> Result<()> {
        let Share::Part(part) = share else { return self.lock(id) };
        self.wait(&lock_of(id, part), &format!("part {part}"))?;
        self.lock_shared(id)
    }

    /// Records the number of parts of an unfinished load, and lets other parts begin. Processes that divide a
    /// load differently would load some units twice, and only one of each two could commit.
    ///
    /// # Errors
    /// Processes that divide the load into another number of parts are at work.
    pub(crate) fn begun(&self, id: &str, share: Share, complete: bool) -> Result<()> {
        let Share::Part(part) = share else { return Ok(()) };
        if !complete {
            self.keep_parts(id, part)?;
        }
        self.link.value::<bool>(UNLOCK, &[&advisory_key(&beginning_of(id))]).map(drop)
    }

    fn keep_parts(&self, id: &str, part: Part) -> Result<()> {
        let of = part.parts() as i32;
        let recorded = format!("SELECT parts FROM {} WHERE load_id = $1", self.table("loads"));
        let recorded: Option<i32> = self.link.value(&recorded, &[&id])?;
        if recorded == Some(of) {
            return Ok(());
        }
        // Granted only if no process works on a part.
        if !self.wait_for_lock(LOCK, id, Instant::now() + PATIENCE)? {
            let parts = recorded.map_or("another number of".to_owned(), |parts| parts.to_string());
            let what = format!("the load is being loaded in {parts} parts, and this run is part {part}");
            let advice = "use the same number of parts for all, or wait until the others have ended";
            return Err(self.busy(what, advice));
        }
        self.set(id, "parts", &of)?;
        self.link.value::<bool>(UNLOCK, &[&advisory_key(id)]).map(drop)
    }

    /// Takes the load's lock together with other parts.
    fn lock_shared(&self, id: &str) -> Result<()> {
        match self.wait_for_lock(LOCK_SHARED, id, Instant::now() + PATIENCE)? {
            true => Ok(()),
            false => Err(self.busy(
                "another run loads or finishes the whole load",
                "wait until it ends, or stop it; then run the same command again",
            )),
        }
    }

    /// Waits for a lock, with a notice if it takes long.
    fn wait(&self, lock: &str, of: &str) -> Result<()> {
        if self.wait_for_lock(LOCK, lock, Instant::now() + SILENT)? {
            return Ok(());
        }
        self.link.control.notice(&format!("another process works on {of}; waiting until it ends"));
        let far = Duration::from_secs(365 * 86_400);
        self.wait_for_lock(LOCK, lock, Instant::now() + far).map(drop)
    }
}

fn lock_of(id: &str, part: Part) -> String {
    format!("{id} part {part}")
}

/// The name of the lock that transactions which commit units of a load, or of a part, hold together.
pub(super) fn writers_of(id: &str) -> String {
    format!("{id} writes")
}

/// The statement by which a transaction that commits units keeps later runs from beginning.
pub(crate) fn lock_of_writers(id: &str, share: Share) -> String {
    let part = if let Share::Part(part) = share { Some(lock_of(id, part)) } else { None };
    let locks = [Some(id.to_owned()), part].into_iter().flatten().map(|id| {
        let key = advisory_key(&writers_of(&id));
        format!("pg_advisory_xact_lock_shared({key})")
    });
    format!("SELECT {}", locks.collect::<Vec<_>>().join(", "))
}

fn beginning_of(id: &str) -> String {
    format!("{id} begins")
}
