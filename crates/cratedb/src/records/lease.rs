//! One load at a time: a lease on a new table, or on the rest of an append.
//!
//! CrateDB has no locks, but it inserts rows with the same primary key one after the other. If several loads insert
//! a lease's next number, one of them succeeds, and the highest number holds the lease. The holder regularly
//! increments a beat in its row. If the beat does not change for a while, or the holder's process is known to be
//! gone, another load takes the next number. The former holder then finds its row gone. Clocks of different
//! machines are never compared.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use owner::Owner;
use sawmill_profile::{Profile, Spawned, spawn, turns};
use sawmill_source::{Control, Error, Kind, Result};
use serde_json::json;

use crate::connect::client::{Client, Cluster};
use crate::connect::sql::Sql;
use crate::records::checkpoint::{Checkpoints, Records};

mod owner;

/// How often a holder signals that it is alive.
const BEAT: Duration = Duration::from_secs(3);
/// How often others check.
const LOOK: Duration = Duration::from_millis(500);
/// Looks in a row that find the same beat before the holder counts as gone: half a minute, without the time in which
/// the server does not answer, as the holder cannot show itself then either. On a loaded server one beat took 7.8 s.
const STILL: u32 = 60;
/// A holder that could not signal for this long asks the server before each batch whether it still holds the lease.
/// That is long before another run counts it as gone.
const LATE: Duration = Duration::from_secs(12);
/// How long the state of loads waits for a sign of their holders: longer than a beat on a loaded server.
const SIGN: Duration = Duration::from_secs(12);
/// How long the end of a load may take to give its lease back.
const GIVE_BACK: Duration = Duration::from_secs(2);

/// The lease's name: the table when it is created, the load when it appends, because others may append to the table
/// at the same time.
pub(crate) fn lease_name(table: &str, mode: &str, load: &str) -> String {
    if mode == "append" { format!("{table}, load {load}") } else { table.to_owned() }
}

/// The leases whose holder is alive.
pub(crate) fn alive(records: &mut Records<'_>, names: Vec<String>) -> Result<HashSet<String>> {
    let mut alive = HashSet::new();
    let mut doubtful = Vec::new();
    if names.is_empty() || !records.have(&[LEASES])? {
        return Ok(alive);
    }
    for name in names {
        match records.leases(&name)?.into_iter().next_back() {
            Some(held) if !held.owner.as_ref().is_some_and(Owner::is_gone) => match &held.owner {
                Some(owner) if owner.is_here() => drop(alive.insert(name)),
                _ => doubtful.push((name, held)),
            },
            _ => {}
        }
    }
    let end = turns::now() + SIGN;
    while !doubtful.is_empty() && turns::now() < end {
        records.sql.control.sleep(LOOK)?;
        for at in (0..doubtful.len()).rev() {
            let (name, seen) = &doubtful[at];
            let now = records.leases(name)?.into_iter().next_back();
            if now.as_ref().is_some_and(|now| (now.number, now.beat) == (seen.number, seen.beat)) {
                continue;
            }
            let (name, _) = doubtful.swap_remove(at);
            now.and_then(|_| alive.insert(name).then_some(()));
        }
    }
    Ok(alive)
}

/// A lease that is held until it is dropped.
pub(crate) struct Lease {
    holder: Arc<Holder>,
    thread: Option<Spawned<(), Error>>,
}

/// The state that the holder and its thread share.
struct Holder {
    checkpoints: Checkpoints,
    cluster: Arc<Cluster>,
    name: String,
    number: i64,
    owner: Owner,
    lost: AtomicBool,
    over: AtomicBool,
    hurry: AtomicBool,
    /// When the last beat began that arrived.
    shown: Mutex<Instant>,
}

/// A row of the lease table.
struct Held {
    number: i64,
    /// `None` if another version has written it.
    owner: Option<Owner>,
    /// The owner as the table has it.
    text: String,
    beat: i64,
}

impl Lease {
    /// Waits until the lease is free, if its holder seems to be gone.
    ///
    /// # Errors
    /// Another load that is under way.
    pub(crate) fn take(checkpoints: &Checkpoints, name: &str, sql: &mut Sql<'_>) -> Result<Self> {
        let owner = Owner::here();
        let taken = follow(checkpoints, name, &owner, sql);
        let number = taken.inspect_err(|_| owner.leave())?;
        let holder = Arc::new(Holder {
            checkpoints: checkpoints.clone(),
            cluster: Arc::clone(sql.cluster()),
            name: name.to_owned(),
            number,
            owner,
            lost: AtomicBool::new(false),
            over: AtomicBool::new(false),
            hurry: AtomicBool::new(false),
            shown: Mutex::new(turns::now()),
        });
        let beating = Arc::clone(&holder);
        let thread = Some(spawn("lease", move || {
            beating.beat();
            Ok(())
        })?);
        Ok(Self { holder, thread })
    }

    /// Checks that this load still holds the lease, as far as it has seen.
    ///
    /// # Errors
    /// Another load has the lease, or may take it because the thread that holds it panicked.
    pub(crate) fn check(&self) -> Result<()> {
        if self.holder.lost.load(Relaxed) {
            return Err(self.holder.followed());
        }
        match self.thread.as_ref().is_some_and(Spawned::is_finished) {
            true => Err(Error::new(Kind::Source, "the thread that holds the lease of this load panicked")
                .advise("run the same command again to go on, and report the lines about the panic above")),
            false => Ok(()),
        }
    }

    /// Whether the holder has not shown itself for so long that others may soon take it for gone.
    pub(crate) fn is_late(&self) -> bool {
        let shown = *self.holder.shown.lock().unwrap_or_else(PoisonError::into_inner);
        turns::now().saturating_duration_since(shown) > LATE
    }

    /// The same as [`check`](Self::check), asked of the server.
    ///
    /// # Errors
    /// Another load has the lease; no connection.
    pub(crate) fn confirm(&self, sql: &mut Sql<'_>) -> Result<()> {
        if self.holder.is_ours(sql)? { self.check() } else { Err(self.holder.followed()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.holder.over.store(true, Relaxed);
        let Some(thread) = self.thread.take() else { return };
        thread.wake();
        let end = turns::now() + GIVE_BACK;
        while !thread.is_finished() && turns::now() < end {
            turns::sleep(Duration::from_millis(1));
        }
        self.holder.hurry.store(true, Relaxed);
        // A thread that panicked has nothing to say to a load that ends.
        let _ = thread.join();
        self.holder.owner.leave();
    }
}

/// Takes the lease, and returns its number.
fn follow(checkpoints: &Checkpoints, name: &str, owner: &Owner, sql: &mut Sql<'_>) -> Result<i64> {
    let place = sql.place();
    let mut records = checkpoints.on(sql);
    let busy = |held: &Held| {
        let who = held.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
        Error::new(Kind::Busy, format!("another run is loading {name}{who}"))
            .at(&place)
            .advise("wait until it has ended; the same command then continues where it stopped")
    };
    let (mut seen, mut looks) = (None, 0);
    loop {
        let held = records.leases(name)?;
        let free = match held.last() {
            None => 0,
            // This owner has taken it, but the answer got lost.
            Some(held) if held.owner.as_ref() == Some(owner) => return Ok(held.number),
            Some(held) if held.owner.as_ref().is_some_and(Owner::is_gone) || looks >= STILL => held.number,
            Some(held) if held.owner.as_ref().is_some_and(Owner::is_here) => return Err(busy(held)),
            // A process on another machine only shows its beat.
            Some(held) => {
                match seen {
                    Some(seen) if seen != (held.number, held.beat) => return Err(busy(held)),
                    Some(_) => looks += 1,
                    None => {
                        let who = held.owner.as_ref().map(|owner| format!(" by {owner}")).unwrap_or_default();
                        records.sql.control.notice(&format!(
                            "{name} is locked{who}; checking whether that run is still alive"
                        ));
                        seen = Some((held.number, held.beat));
                    }
                }
                records.sql.control.sleep(LOOK)?;
                continue;
            }
        };
        if records.insert_lease(name, free + 1, &owner.to_text())? {
            for earlier in held {
                records.delete_lease(name, earlier.number, &earlier.text)?;
            }
            return Ok(free + 1);
        }
    }
}

impl Holder {
    fn followed(&self) -> Error {
        Error::new(Kind::Busy, format!("another run has taken over the load of {}", self.name))
            .at(self.cluster.server.to_string())
            .advise("this run did not reach the server for too long; wait until the other one has ended")
    }

    fn is_ours(&self, sql: &mut Sql<'_>) -> Result<bool> {
        let owners = self.checkpoints.on(sql).lease_owners(&self.name, self.number)?;
        let own = |text: &str| serde_json::from_str::<Owner>(text).is_ok_and(|owner| owner == self.owner);
        Ok(matches!(owners.as_slice(), [(number, text)] if *number == self.number && own(text)))
    }

    /// Signals that the holder is alive until the load is over, then gives the lease back.
    fn beat(&self) {
        let phase = Profile::new().phase("lease");
        let control = Control::new(&self.hurry, &phase);
        let mut client = Client::at_once(&self.cluster);
        let sql = &mut client.on(&control);
        let mut beat = 0;
        loop {
            let end = turns::now() + BEAT;
            while turns::now() < end && !self.over.load(Relaxed) {
                turns::park(end.saturating_duration_since(turns::now()));
            }
            if self.over.load(Relaxed) {
                // If the lease cannot be given back, another run takes it over as after a kill.
                let _ = self.checkpoints.on(sql).delete_lease(&self.name, self.number, &self.owner.to_text());
                return;
            }
            let began = turns::now();
            // If the server does not answer now, the next beat asks again.
            if matches!(self.is_ours(sql), Ok(false)) {
                self.lost.store(true, Relaxed);
                return;
            }
            beat += 1;
            if self.checkpoints.on(sql).beat(&self.name, self.number, beat).is_ok() {
                *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = began;
            }
        }
    }
}

/// The table's name.
pub(crate) const LEASES: &str = "leases";

impl Records<'_> {
    /// Creates the table where it is missing.
    pub(super) fn create_leases(&mut self) -> Result<()> {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {} (\"name\" TEXT, \"number\" BIGINT, \"owner\" TEXT, \"beat\" BIGINT, \
             PRIMARY KEY (\"name\", \"number\")) CLUSTERED INTO 1 SHARDS",
            self.table(LEASES)
        );
        self.sql.run(&statement, &[]).map(drop)
    }

    /// Whether any lease is held. Another command may have dropped the table.
    pub(super) fn any_leases(&mut self) -> Result<bool> {
        if !self.have(&[LEASES])? {
            return Ok(false);
        }
        self.refresh(LEASES)?;
        let count = format!("SELECT count(*) FROM {}", self.table(LEASES));
        Ok(self.sql.number(&count, &[])? > 0)
    }

    /// All rows of a lease, the latest number last. Makes the tables of records if this one is missing.
    fn leases(&mut self, name: &str) -> Result<Vec<Held>> {
        if self.is_refused_refresh(LEASES)? {
            self.create()?;
            self.refresh(LEASES)?;
        }
        let table = self.table(LEASES);
        let statement = format!(
            "SELECT \"number\", \"owner\", \"beat\" FROM {table} WHERE \"name\" = ? ORDER BY \"number\""
        );
        let answer = self.sql.run(&statement, &[json!(name)])?;
        let rows = answer.all::<(i64, String, i64)>()?.into_iter();
        Ok(rows
            .map(|(number, text, beat)| Held { number, owner: serde_json::from_str(&text).ok(), text, beat })
            .collect())
    }

    /// The owners of a number of a lease and of the next one. The server looks up whole keys without a refresh only if
    /// the list has literals, not parameters.
    pub(super) fn lease_owners(&mut self, name: &str, number: i64) -> Result<Vec<(i64, String)>> {
        let (table, next) = (self.table(LEASES), number + 1);
        let of_both = format!("\"name\" = ? AND \"number\" IN ({number}, {next})");
        self.sql
            .run(&format!("SELECT \"number\", \"owner\" FROM {table} WHERE {of_both}"), &[json!(name)])?
            .all()
    }

    /// Whether this load was the one that inserted this number.
    pub(super) fn insert_lease(&mut self, name: &str, number: i64, owner: &str) -> Result<bool> {
        let statement = format!(
            "INSERT INTO {} (\"name\", \"number\", \"owner\", \"beat\") VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            self.table(LEASES)
        );
        let arguments = [json!(name), json!(number), json!(owner), json!(0)];
        Ok(self.sql.run(&statement, &arguments)?.count()? == 1)
    }

    /// Signals that the holder is alive.
    pub(super) fn beat(&mut self, name: &str, number: i64, beat: i64) -> Result<()> {
        let table = self.table(LEASES);
        let statement = format!("UPDATE {table} SET \"beat\" = ? WHERE \"name\" = ? AND \"number\" = ?");
        self.sql.run(&statement, &[json!(beat), json!(name), json!(number)]).map(drop)
    }

    /// Removes a number of a lease of this owner: when a late request arrives, another one may have the number. The server
    /// looks for columns beside the key's only among refreshed rows.
    pub(super) fn delete_lease(&mut self, name: &str, number: i64, owner: &str) -> Result<()> {
        self.refresh(LEASES)?;
        let table = self.table(LEASES);
        let statement =
            format!("DELETE FROM {table} WHERE \"name\" = ? AND \"number\" = ? AND \"owner\" = ?");
        self.sql.run(&statement, &[json!(name), json!(number), json!(owner)]).map(drop)
    }
}
