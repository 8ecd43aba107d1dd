//! A cluster in memory: the stand-in that interprets statements, and requests that are under way.

use std::collections::BTreeMap;
use std::time::Duration;

use sawmill_cratedb_standin::{Engine, Request, Served, Work};

use super::audit::Audit;
use super::fault::Step;
use super::mistake::Mistake;

pub const SCHEMA: &str = "doc";
/// The name of the table, and of the tables that gather its rows.
pub const TABLE: &str = "rows";
pub const GATHERING: [&str; 2] = ["rows__sawmill_loading", "rows__sawmill_sealed"];

/// A request whose answer is awaited.
pub type Ticket = u64;

/// A request that goes on without its loader, or for longer.
struct Pending {
    at: Duration,
    process: usize,
    what: What,
    /// The connection that waits for the answer.
    ticket: Option<Ticket>,
}

enum What {
    /// It reaches the server.
    Arrives(Request),
    /// The server ends it.
    Ends(Work),
}

/// The cluster.
pub struct Server {
    pub engine: Engine,
    pub audit: Audit,
    pub mistake: Option<Mistake>,
    pending: Vec<Pending>,
    /// Answers, and when they arrive.
    answers: BTreeMap<Ticket, (Duration, Served)>,
    next: Ticket,
    /// Counts crashes, which end all connections.
    pub epoch: u64,
    pub refuses_until: Duration,
    /// When the recovery began and ends.
    recovering: (Duration, Duration),
    /// What each statement did, for the history.
    pub told: Vec<String>,
}

impl Server {
    pub fn new(audit: Audit, mistake: Option<Mistake>) -> Self {
        Self {
            engine: Engine::default(),
            audit,
            mistake,
            pending: Vec::new(),
            answers: BTreeMap::new(),
            next: 0,
            epoch: 0,
            refuses_until: Duration::ZERO,
            recovering: (Duration::ZERO, Duration::ZERO),
            told: Vec::new(),
        }
    }

    pub fn new_ticket(&mut self) -> Ticket {
        self.next += 1;
        self.next
    }

    /// A request that reaches the server at this time.
    pub fn arrive_at(&mut self, at: Duration, request: Request, process: usize) {
        self.pending.push(Pending { at, process, what: What::Arrives(request), ticket: None });
    }

    /// A request that the server has begun and ends at this time, unless it is killed earlier.
    pub fn end_at(&mut self, at: Duration, work: Work, process: usize, ticket: Option<Ticket>) {
        self.pending.push(Pending { at, process, what: What::Ends(work), ticket });
    }

    /// An answer that arrives at this time.
    pub fn answer_at(&mut self, at: Duration, ticket: Ticket, served: Served) {
        self.answers.insert(ticket, (at, served));
    }

    /// The answer, or when to look again.
    pub fn answer(&mut self, ticket: Ticket, now: Duration) -> Result<Served, Duration> {
        match self.answers.get(&ticket) {
            Some((at, _)) if *at > now => Err(*at),
            Some(_) => Ok(self.answers.remove(&ticket).map_or_else(Default::default, |(_, served)| served)),
            None => {
                let own = self.pending.iter().find(|pending| pending.ticket == Some(ticket));
                Err(own.map_or(Duration::MAX, |own| own.at))
            }
        }
    }

    /// Lets all requests go on that end until then.
    pub fn run_until(&mut self, now: Duration, since_1970: Duration) {
        self.engine.set_clock(since_1970);
        loop {
            let is_due = |pending: &Pending| match &pending.what {
                What::Ends(work) if self.engine.is_killed(work) => true,
                _ => pending.at <= now,
            };
            let due = self.pending.iter().enumerate().filter(|(_, pending)| is_due(pending));
            let Some((first, _)) = due.min_by_key(|(_, pending)| pending.at) else { return };
            let Pending { at, process, what, ticket } = self.pending.remove(first);
            let work = match what {
                What::Arrives(request) => self.engine.begin(request),
                What::Ends(work) => work,
            };
            self.told.push(format!("request of loader {process} ends later: {}", shown(work.request())));
            let served = self.end(work, process);
            if let Some(ticket) = ticket {
                self.answer_at(at.min(now), ticket, served);
            }
        }
    }

    /// Ends a request, and looks at what became of the table.
    pub fn end(&mut self, work: Work, process: usize) -> Served {
        let step = Step::of(work.request());
        if let Some(served) = self.mistaken(step, work.request()) {
            self.engine.abandon(work);
            return served;
        }
        let killed = self.engine.is_killed(&work);
        let served = self.engine.end(work);
        if step == Step::Place && served.0 == 200 && !killed {
            self.audit.completes(process);
        }
        if step.writes() && step != Step::Beat {
            self.audit.look_at(&self.engine);
        }
        served
    }

    /// Serves a request at once.
    pub fn serve(&mut self, request: Request, process: usize, now: Duration) -> Served {
        if let Some(served) = self.not_recovered(&request, now) {
            return served;
        }
        let work = self.engine.begin(request);
        self.end(work, process)
    }

    /// The answer that a mistake gives.
    fn mistaken(&self, step: Step, request: &Request) -> Option<Served> {
        let done = |count: u64, rows: &str| {
            Some((200, format!("{{\"cols\":[],\"rows\":{rows},\"rowcount\":{count},\"duration\":0.1}}")))
        };
        match (self.mistake?, step) {
            (Mistake::NoRefresh, Step::Refresh) => done(1, "[]"),
            (Mistake::LeaseForAll, Step::ReadLease) if request.statement().contains("\"beat\"") => {
                done(0, "[]")
            }
            (Mistake::LeaseForAll, Step::TakeLease) => done(1, "[]"),
            (Mistake::KeepRows, Step::RemoveRows) => done(1, "[]"),
            (Mistake::CompleteEarly, Step::Place) => done(1, "[]"),
            (Mistake::NeverComplete, Step::RecordComplete) => done(1, "[]"),
            (Mistake::TrustRecords, Step::Count) if request.statement().contains("GROUP BY") => {
                let tags = self.recorded_tags();
                done(
                    tags.len() as u64,
                    &format!("{:?}", tags.iter().map(|(tag, rows)| [*tag, *rows]).collect::<Vec<_>>()),
                )
            }
            (Mistake::KeepTags, Step::DropTags) => done(1, "[]"),
            (Mistake::KeepLease, Step::GiveLeaseBack) => done(1, "[]"),
            (Mistake::NoFlush, Step::Flush) => done(1, "[]"),
            (Mistake::DropFirst, Step::CreateTable) => {
                self.engine.execute(&format!("DROP TABLE \"{SCHEMA}\".\"{TABLE}\""));
                None
            }
            (Mistake::PlaceEarly, Step::Seal) => {
                let [gathering, _] = GATHERING;
                Some(
                    self.engine
                        .execute(&format!("ALTER TABLE \"{SCHEMA}\".\"{gathering}\" RENAME TO \"{TABLE}\"")),
                )
            }
            _ => None,
        }
    }

    /// The rows on record under each tag.
    fn recorded_tags(&self) -> BTreeMap<u64, u64> {
        let mut tags = BTreeMap::new();
        for text in self.engine.values("sawmill", "units", "tags").unwrap_or_default() {
            let text: String = serde_json::from_str(&text).unwrap_or_default();
            let of_unit: Vec<(u64, u64)> = serde_json::from_str(&text).unwrap_or_default();
            of_unit.into_iter().for_each(|(tag, rows)| *tags.entry(tag).or_default() += rows);
        }
        tags
    }

    /// The node crashes: its jobs end, and so do its connections.
    pub fn crash(&mut self, now: Duration, away: Duration, recovering: Duration) {
        self.epoch += 1;
        for pending in std::mem::take(&mut self.pending) {
            match pending.what {
                What::Ends(work) => self.engine.abandon(work),
                What::Arrives(_) => self.pending.push(pending),
            }
        }
        self.answers.clear();
        self.engine.crash();
        self.refuses_until = now + away;
        self.recovering = (self.refuses_until, self.refuses_until + recovering);
    }

    /// It has recovered and refuses nothing.
    pub fn is_well(&mut self, now: Duration) {
        self.refuses_until = now;
        self.recovering = (now, now);
    }

    /// When the last request ends that is under way.
    pub fn last_end(&self) -> Option<Duration> {
        self.pending.iter().map(|pending| pending.at).max()
    }

    /// The answer of a node that has not recovered: at first it knows no tables, then their shards have not started.
    fn not_recovered(&self, request: &Request, now: Duration) -> Option<Served> {
        let (began, end) = self.recovering;
        if now >= end {
            return None;
        }
        let knows_tables = now >= began + (end - began) / 2;
        let refused = |status: u16, code: u32, what: &str| {
            Some((status, format!("{{\"error\":{{\"message\":\"{what}\",\"code\":{code}}}}}")))
        };
        let statement = request.statement();
        match (Step::of(request), knows_tables) {
            (Step::AskServer | Step::AskJobs | Step::Kill, _) => None,
            (Step::AskCatalogue, true) if !statement.starts_with("SHOW") => None,
            (Step::AskCatalogue, false) if !statement.starts_with("SHOW") => {
                let rows = if statement.contains("count(*)") { "[[0]]" } else { "[]" };
                Some((200, format!("{{\"cols\":[],\"rows\":{rows},\"rowcount\":0,\"duration\":0.5}}")))
            }
            (_, true) => refused(404, 4040, "IllegalIndexShardStateException[CurrentState[RECOVERING]]"),
            (_, false) if statement.contains("\"doc\".") => {
                refused(404, 4041, "RelationUnknown[Relation 'doc.rows' unknown]")
            }
            (_, false) => refused(404, 4045, "SchemaUnknownException[Schema 'sawmill' unknown]"),
        }
    }
}

/// The beginning of a statement.
pub fn shown(request: &Request) -> String {
    let text: String = request.statement().chars().take(110).collect();
    match request.rows() {
        Some(rows) => format!("{text} ({rows} rows)"),
        None => text,
    }
}
