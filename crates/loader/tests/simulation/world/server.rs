//! A server in memory: tables, the records of loads, transactions, connections and locks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sawmill_loader::{LoadRecord, RecordedFiles, Tally};
use sawmill_source::{Error, Kind, Result, UnitKey};

use super::audit::Audit;
use super::draw::Draw;
use super::mistake::Mistake;

/// The name of the table, and of the table that gathers its rows.
pub const TABLE: &str = "rows";
pub const STAGING: &str = "rows (staging)";

/// The server's committed state.
#[derive(Clone, Debug, Default)]
pub struct Data {
    pub tables: BTreeMap<u32, Table>,
    pub loads: BTreeMap<String, LoadRow>,
    pub units: BTreeMap<(String, UnitKey), Tally>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub rows: Vec<u64>,
    /// Another number for other columns.
    pub columns: u32,
}

/// The record of a load, and when it began.
#[derive(Clone, Debug)]
pub struct LoadRow {
    pub record: LoadRecord,
    pub begun: u64,
    /// The number of parts that processes divide it into.
    pub parts: Option<u32>,
}

/// A change by a transaction.
#[derive(Clone, Debug)]
pub enum Change {
    CreateTable(u32, &'static str, Vec<u64>),
    DropTable(u32),
    Rename(u32, &'static str),
    Truncate(u32),
    Rows(u32, Vec<u64>),
    /// Units of a load into a table with these columns.
    Units(String, Vec<(UnitKey, Tally)>, u32, u32),
    PutLoad(String, Box<LoadRow>),
    DeleteLoad(String),
    /// Deletes the records of the loads into a table, except one.
    DeleteLoadsOf(u32, String),
    Stamps(String, RecordedFiles),
    Complete(String),
    Parts(String, u32),
    KeepUnderAnotherId(String),
}

impl Data {
    pub fn table(&self, name: &str) -> Option<(u32, &Table)> {
        self.tables.iter().find(|(_, table)| table.name == name).map(|(oid, table)| (*oid, table))
    }

    pub fn units_of(&self, id: &str) -> impl Iterator<Item = (UnitKey, &Tally)> {
        let of_load = move |((load, key), tally)| (load == id).then_some((key, tally));
        self.units.iter().map(|((load, key), tally)| ((load.as_str(), *key), tally)).filter_map(of_load)
    }

    /// The rows that loads into a table have on record.
    pub fn recorded_into(&self, oid: u32) -> u64 {
        let of_table = |id: &str| self.loads.get(id).is_some_and(|row| row.record.table_oid == oid);
        self.units.iter().filter(|((id, _), _)| of_table(id)).map(|(_, tally)| tally.rows).sum()
    }

    fn apply(&mut self, change: Change, mistake: Option<Mistake>) -> Result<()> {
        let refused = |what: String| Err(Error::new(Kind::Server, what));
        match change {
            Change::CreateTable(oid, name, rows) => {
                if self.table(name).is_some() {
                    return refused(format!("table {name} exists"));
                }
                self.tables.insert(oid, Table { name: name.to_owned(), rows, columns: 0 });
            }
            Change::DropTable(oid) => drop(self.tables.remove(&oid)),
            Change::Rename(oid, name) => {
                if self.table(name).is_some() {
                    return refused(format!("table {name} exists"));
                }
                match self.tables.get_mut(&oid) {
                    Some(table) => name.clone_into(&mut table.name),
                    None => return refused(format!("table {oid} is gone")),
                }
            }
            Change::Truncate(oid) => match self.tables.get_mut(&oid) {
                Some(table) => table.rows.clear(),
                None => return refused(format!("table {oid} is gone")),
            },
            Change::Rows(oid, rows) => match self.tables.get_mut(&oid) {
                Some(table) => table.rows.extend(rows),
                None => return refused(format!("table {oid} is gone")),
            },
            Change::Units(id, units, oid, columns) => {
                if self.tables.get(&oid).is_none_or(|table| table.columns != columns) {
                    return refused("the table's columns changed".to_owned());
                }
                if !self.loads.contains_key(&id) {
                    return refused("the units' load is not on record".to_owned());
                }
                for (key, tally) in units {
                    let old = self.units.insert((id.clone(), key), tally);
                    if old.is_some()
                        && mistake != Some(Mistake::NoUniqueKey)
                        && mistake != Some(Mistake::ForgetToAsk)
                    {
                        return refused(format!("{key:?} is on record"));
                    }
                }
            }
            Change::PutLoad(id, row) => {
                if self.loads.insert(id, *row).is_some() {
                    return refused("the load is on record".to_owned());
                }
            }
            Change::DeleteLoad(id) => self.delete_load(&id),
            Change::DeleteLoadsOf(oid, but) => {
                let of_table =
                    self.loads.iter().filter(|(id, row)| row.record.table_oid == oid && **id != but);
                let ids: Vec<String> = of_table.map(|(id, _)| id.clone()).collect();
                ids.iter().for_each(|id| self.delete_load(id));
            }
            Change::Stamps(id, files) => {
                if let Some(row) = self.loads.get_mut(&id) {
                    row.record.files.stamps = files.stamps;
                }
            }
            Change::Complete(id) => match self.loads.get_mut(&id) {
                Some(row) => row.record.complete = true,
                None => {
                    return Err(Error::new(Kind::Changed, "the record of the load no longer exists"));
                }
            },
            Change::Parts(id, parts) => {
                if let Some(row) = self.loads.get_mut(&id) {
                    row.parts = Some(parts);
                }
            }
            Change::KeepUnderAnotherId(id) => {
                let Some(mut row) = self.loads.remove(&id) else { return Ok(()) };
                let other = format!("{id}#{}", row.begun);
                row.record.id.clone_from(&other);
                self.loads.insert(other.clone(), row);
                let units: Vec<(UnitKey, Tally)> =
                    self.units_of(&id).map(|(key, tally)| (key, tally.clone())).collect();
                for (key, tally) in units {
                    self.units.remove(&(id.clone(), key));
                    self.units.insert((other.clone(), key), tally);
                }
            }
        }
        Ok(())
    }

    fn delete_load(&mut self, id: &str) {
        self.loads.remove(id);
        self.units.retain(|(load, _), _| load != id);
    }
}

/// The server's side of a connection.
#[derive(Debug)]
struct Backend {
    process: usize,
    transaction: Vec<Change>,
    /// The load, and the part, whose later runs wait for its transaction.
    writes: Vec<String>,
}

/// The connections that hold a lock: one alone, or several together.
#[derive(Debug, Default)]
struct Lock {
    is_shared: bool,
    holders: BTreeSet<u64>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// The server notices that a client is gone.
    Disconnect(u64),
    /// A commit that its client does not wait for any more.
    Commit(u64, bool),
}

pub struct Server {
    pub data: Data,
    /// The states before each commit since the last one that waited for the disk.
    unsynced: Vec<Data>,
    /// Every commit waits for the disk.
    pub synchronous: bool,
    pub refuses_until: Duration,
    /// Requests that find no room on the disk.
    pub without_room: u64,
    backends: BTreeMap<u64, Backend>,
    locks: BTreeMap<String, Lock>,
    events: Vec<(Duration, Event)>,
    connections: u64,
    oids: u32,
    pub draw: Draw,
    pub mistake: Option<Mistake>,
    pub audit: Audit,
}

impl Server {
    pub fn new(synchronous: bool, mistake: Option<Mistake>, audit: Audit, draw: Draw) -> Self {
        Self {
            data: Data::default(),
            unsynced: Vec::new(),
            synchronous,
            refuses_until: Duration::ZERO,
            without_room: 0,
            backends: BTreeMap::new(),
            locks: BTreeMap::new(),
            events: Vec::new(),
            connections: 0,
            oids: 100,
            draw,
            mistake,
            audit,
        }
    }

    pub fn connect(&mut self, process: usize) -> u64 {
        self.connections += 1;
        self.backends
            .insert(self.connections, Backend { process, transaction: Vec::new(), writes: Vec::new() });
        self.connections
    }

    pub fn is_connected(&self, connection: u64) -> bool {
        self.backends.contains_key(&connection)
    }

    pub fn new_oid(&mut self) -> u32 {
        self.oids += 1;
        self.oids
    }

    /// Runs the events that are due.
    pub fn run_until(&mut self, now: Duration) {
        while let Some(next) = (0..self.events.len()).min_by_key(|at| (self.events[*at].0, *at)) {
            if self.events[next].0 > now {
                return;
            }
            match self.events.remove(next).1 {
                Event::Disconnect(connection) => self.disconnect(connection),
                Event::Commit(connection, durable) => {
                    let _ = self.commit(connection, durable);
                    self.disconnect(connection);
                }
            }
        }
    }

    /// The client is gone, which the server notices now.
    pub fn disconnect(&mut self, connection: u64) {
        self.backends.remove(&connection);
        self.locks.retain(|_, lock| {
            lock.holders.remove(&connection);
            !lock.holders.is_empty()
        });
    }

    /// The client is gone, which the server notices now or later.
    pub fn cut(&mut self, connection: u64, now: Duration) {
        let delay = self.draw.of(&[0, 0, 0, 300, 3_000, 9_000]);
        match delay {
            0 => self.disconnect(connection),
            _ => self.events.push((now + Duration::from_millis(delay), Event::Disconnect(connection))),
        }
    }

    /// The client is gone, and the server commits its transaction later.
    pub fn commit_later(&mut self, connection: u64, durable: bool, now: Duration) {
        let delay = self.draw.of(&[1, 100, 150, 1_000, 4_000]);
        self.events.push((now + Duration::from_millis(delay), Event::Commit(connection, durable)));
    }

    /// Takes a lock for as long as the connection lives, alone or together with others. Whether it is granted.
    pub fn lock(&mut self, connection: u64, name: &str, is_shared: bool) -> bool {
        let lock = self.locks.entry(name.to_owned()).or_default();
        let is_granted =
            lock.holders.iter().all(|holder| *holder == connection) || is_shared && lock.is_shared;
        if is_granted {
            lock.is_shared = is_shared;
            lock.holders.insert(connection);
        }
        is_granted
    }

    pub fn unlock(&mut self, name: &str) {
        self.locks.remove(name);
    }

    /// Whether no other connection holds the lock.
    pub fn holds_alone(&self, connection: u64, name: &str) -> bool {
        self.locks.get(name).is_none_or(|lock| lock.holders.iter().all(|holder| *holder == connection))
    }

    /// The transactions of this connection commit units of a load, or of a part.
    pub fn writes(&mut self, connection: u64, names: Vec<String>) {
        if let Some(backend) = self.backends.get_mut(&connection) {
            backend.writes = names;
        }
    }

    /// Whether a commit of units of the load, or of the part, still runs.
    pub fn commits_later(&self, name: &str) -> bool {
        self.events.iter().any(|(_, event)| match event {
            Event::Commit(connection, _) => self.backends.get(connection).is_some_and(|backend| {
                backend.writes.iter().any(|of| of == name)
                    && backend.transaction.iter().any(|change| matches!(change, Change::Units(..)))
            }),
            Event::Disconnect(_) => false,
        })
    }

    pub fn is_locked(&self, id: &str) -> bool {
        self.locks.contains_key(id)
    }

    /// Adds changes to the open transaction.
    pub fn change(&mut self, connection: u64, changes: impl IntoIterator<Item = Change>) {
        if let Some(backend) = self.backends.get_mut(&connection) {
            backend.transaction.extend(changes);
        }
    }

    pub fn rollback(&mut self, connection: u64) {
        if let Some(backend) = self.backends.get_mut(&connection) {
            backend.transaction.clear();
        }
    }

    /// Commits the open transaction: all of its changes, or none.
    pub fn commit(&mut self, connection: u64, durable: bool) -> Result<()> {
        let Some(backend) = self.backends.get_mut(&connection) else { return Ok(()) };
        let process = backend.process;
        let changes = std::mem::take(&mut backend.transaction);
        let completes = changes.iter().find_map(|change| match change {
            Change::Complete(id) => Some(id.clone()),
            _ => None,
        });
        let mut data = self.data.clone();
        for change in changes {
            data.apply(change, self.mistake)?;
        }
        let before = std::mem::replace(&mut self.data, data);
        match durable || self.synchronous {
            true => self.unsynced.clear(),
            false => self.unsynced.push(before),
        }
        if let Some(id) = completes {
            self.audit.completes(process, &id, &self.data);
        }
        self.audit.look_at(&self.data);
        Ok(())
    }

    /// Commits a change in a separate transaction.
    pub fn commit_alone(&mut self, change: Change) -> Result<()> {
        let mut data = self.data.clone();
        data.apply(change, self.mistake)?;
        self.unsynced.push(std::mem::replace(&mut self.data, data));
        Ok(())
    }

    /// Commits a change of another client.
    pub fn change_at_once(&mut self, change: Change) {
        let mut data = self.data.clone();
        if data.apply(change, None).is_ok() {
            self.data = data;
            self.unsynced.clear();
        }
    }

    /// Ends all connections. Loses commits that did not wait for the disk if `losing`.
    pub fn crash(&mut self, losing: bool) {
        self.backends.clear();
        self.locks.clear();
        self.events.clear();
        let lost = self.draw.below(self.unsynced.len() as u64 + 1) as usize;
        if losing && lost > 0 {
            self.data = self.unsynced.swap_remove(self.unsynced.len() - lost);
        }
        self.unsynced.clear();
    }

    /// A leftover that an ended load must not leave, apart from tables and records.
    pub fn left_behind(&self) -> Option<String> {
        let open = self.backends.len() + self.locks.len() + self.events.len();
        (open > 0).then(|| format!("{:?} {:?} {:?}", self.backends, self.locks, self.events))
    }
}
