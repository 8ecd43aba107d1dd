//! Reads a plan, or makes one of a dataset's name.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sawmill_generator::{BUILT_IN, Dataset, DatasetName};
use sawmill_profile::parse_duration;
use sawmill_source::{Error, Kind, Result};
use toml::de::DeTable;

use crate::arrivals::process::Arrivals;
use crate::arrivals::shape::Shape;
use crate::plan::abort::Abort;
use crate::plan::limit::Limit;
use crate::plan::node::{self, Item, Node};
use crate::plan::operation::operation;
use crate::plan::pooling::{Pooling, Reconnect};
use crate::plan::types::{Chaos, Operation, Pace, Plan, PlanCheck, PlanTable, Work, is_query};

/// The most operations of a plan, and of a result: each takes half a megabyte of histograms.
pub(crate) const MAX_OPERATIONS: usize = 300;

/// The keys of a plan.
const KEYS: &str = "name rate arrivals clients think for warm-up connections seed isolation timeout retries pooling \
                    reconnect limits abort-when checks chaos proof overwrite drop tables operations";
/// The most connections of a run.
pub const MAX_CONNECTIONS: u64 = 10_000;
/// The shortest timeout of a statement.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

impl Plan {
    /// A plan that does the usual: single prepared inserts into a table of this name, 100 a second.
    pub fn of_dataset(dataset: Dataset) -> Self {
        let name = dataset.name().to_owned();
        let work = Work::Insert { table: 0, rows: 1, prepared: true, upsert: false };
        let insert =
            Operation { name: "insert".into(), weight: 1.0, steps: vec![work], ..Operation::default() };
        let tables = vec![PlanTable { name: name.clone(), dataset: Arc::new(dataset), rows: 0, with: None }];
        Self { operations: vec![insert], tables, ..Self::empty(name) }
    }

    fn empty(name: String) -> Self {
        Self {
            name,
            tables: Vec::new(),
            operations: Vec::new(),
            pace: Pace::Open { shape: Shape::Constant(100.0), arrivals: Arrivals::Poisson },
            length: None,
            warm_up: Duration::ZERO,
            connections: 8,
            seed: 42,
            isolation: None,
            timeout: Duration::from_secs(30),
            retries: 3,
            pooling: Pooling::Kept,
            reconnect: Reconnect::default(),
            checks: Vec::new(),
            limits: Vec::new(),
            abort_when: Vec::new(),
            part: (1, 1),
            start_at: None,
            chaos: None,
            proof: true,
            overwrite: false,
            drop_after: false,
        }
    }

    /// Reads a plan.
    ///
    /// # Errors
    /// The file cannot be read, or a field is wrong. The error names file, line and field, and the allowed values.
    pub fn from_file(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        let text = sawmill_profile::read_text(path).map_err(|error| {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            Error::new(Kind::Config, format!("cannot read the plan: {error}")).at(file.clone()).advise(
                format!(
                    "give a plan (a TOML file), or gen:NAME with a dataset spec or a built-in dataset: {}",
                    names.join(", ")
                ),
            )
        })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::from_toml(&text, &file, folder)
    }

    /// Reads a plan from a text; the paths in it are relative to `folder`, `file` is its name in errors.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file).
    pub fn from_toml(text: &str, file: &str, folder: &Path) -> Result<Self> {
        let parsed = DeTable::parse(text).map_err(|error| node::unreadable(file, text, &error))?;
        let root = Node::root(parsed.get_ref(), file, text);
        root.allow(&KEYS.split_whitespace().collect::<Vec<_>>())?;
        let stem = Path::new(file)
            .file_stem()
            .map_or_else(|| "plan".to_owned(), |stem| stem.to_string_lossy().into());
        let name = root.get("name").map(Item::text).transpose()?.map_or(stem, str::to_owned);
        let mut plan = Self::empty(name);
        plan.tables = tables(root, folder)?;
        let Some(list) = root.get("operations") else {
            return Err(root.error("a plan without operations", "add [[operations]]"));
        };
        let items = list.items()?;
        if items.len() > MAX_OPERATIONS {
            let what = format!("{} operations, more than {MAX_OPERATIONS}", items.len());
            return Err(list.error(what, "drive a plan with fewer"));
        }
        for (i, item) in items.into_iter().enumerate() {
            let of = format!("operation {}", i + 1);
            let read = operation(item.table()?.named(&of), &plan.tables, i + 1)?;
            if plan.operations.iter().any(|other| other.name == read.name) {
                return Err(item
                    .error(format!("two operations are named {:?}", read.name), "give each its own `name`"));
            }
            plan.operations.push(read);
        }
        if plan.operations.iter().all(|operation| operation.weight == 0.0) {
            return Err(list.error("no operation has a weight above 0", "add operations, or weights"));
        }
        plan.checks = checks(root)?;
        plan.pace = pace(root, folder)?;
        plan.settings(root)?;
        Ok(plan)
    }

    fn settings(&mut self, root: Node<'_>) -> Result<()> {
        let time = |key, default| {
            root.get(key).map_or(Ok(default), |item| {
                item.parsed(parse_duration, "give a time such as 500ms, 30s or 5m")
            })
        };
        self.length = root
            .get("for")
            .map(|item| item.parsed(parse_duration, "give a time such as 30s or 5m"))
            .transpose()?;
        self.warm_up = time("warm-up", self.warm_up)?;
        self.timeout = time("timeout", self.timeout)?;
        // The server counts milliseconds, and takes 0 as no limit.
        if let (Some(item), true) = (root.get("timeout"), self.timeout < MIN_TIMEOUT) {
            return Err(item.error("a timeout of less than 1 ms", "give 1ms or more"));
        }
        if let Some(item) = root.get("pooling") {
            self.pooling = item.parsed(str::parse::<Pooling>, "write \"kept\", or how long it is kept")?;
        }
        if let Some(item) = root.get("reconnect") {
            self.reconnect = item.parsed(str::parse::<Reconnect>, "write a time, or \"never\"")?;
        }
        if let Some(item) = root.get("connections") {
            if matches!(self.pace, Pace::Closed { .. }) {
                return Err(
                    item.error("connections in a closed loop", "each client has a connection: leave it out")
                );
            }
            self.connections = item.count(1..=MAX_CONNECTIONS)? as usize;
        }
        if let Some(item) = root.get("seed") {
            self.seed = item.count(0..=u64::MAX)?;
        }
        if let Some(item) = root.get("retries") {
            self.retries = item.count(0..=1000)? as u32;
        }
        let levels = ["read uncommitted", "read committed", "repeatable read", "serializable"];
        if let Some(item) = root.get("isolation") {
            self.isolation = Some(item.word(&levels.map(|level| (level, level)))?.to_owned());
        }
        self.conditions(root)?;
        let chaos =
            root.get("chaos").map(|item| item.parsed(str::parse::<Chaos>, "write `kill server every 30s`"));
        self.chaos = chaos.transpose()?;
        for (key, flag) in
            [("proof", &mut self.proof), ("overwrite", &mut self.overwrite), ("drop", &mut self.drop_after)]
        {
            if let Some(item) = root.get(key) {
                *flag = item.boolean()?;
            }
        }
        Ok(())
    }

    /// Limits, and conditions that end the run early.
    fn conditions(&mut self, root: Node<'_>) -> Result<()> {
        let items = |key| root.get(key).map_or(Ok(Vec::new()), Item::items);
        let known = |item: Item<'_>, limit: &Limit, plan: &Self| {
            plan.check_limit(limit).map_err(|what| item.error(what, "name an operation of the plan"))
        };
        for item in items("limits")? {
            let limit = item.parsed(str::parse::<Limit>, "write `insert.p99 < 20ms`")?;
            known(item, &limit, self)?;
            self.limits.push(limit);
        }
        for item in items("abort-when")? {
            let abort = item.parsed(str::parse::<Abort>, "write `errors > 5% after 30s`")?;
            known(item, abort.condition(), self)?;
            self.abort_when.push(abort);
        }
        Ok(())
    }

    /// Whether the operation that a limit names exists.
    ///
    /// # Errors
    /// It does not exist.
    pub fn check_limit(&self, limit: &Limit) -> std::result::Result<(), String> {
        let Some(name) = limit.operation() else { return Ok(()) };
        match self.operations.iter().any(|operation| operation.name == name) {
            true => Ok(()),
            false => {
                let names: Vec<&str> =
                    self.operations.iter().map(|operation| operation.name.as_str()).collect();
                Err(format!("there is no operation {name:?}; there are {}", names.join(", ")))
            }
        }
    }

    /// How long the part lasts that counts.
    pub fn counted_length(&self) -> Duration {
        let natural = match &self.pace {
            Pace::Open { shape, .. } => shape.natural_length(),
            Pace::Closed { .. } => None,
        };
        self.length.or(natural).unwrap_or(Duration::from_secs(60))
    }
}

fn checks(root: Node<'_>) -> Result<Vec<PlanCheck>> {
    let items = root.get("checks").map_or(Ok(Vec::new()), Item::items)?;
    let check = |(place, item): (usize, Item<'_>)| {
        let of = format!("check {}", place + 1);
        let node = item.table()?.named(&of);
        node.allow(&["name", "sql"])?;
        let given = |key| node.get(key).ok_or_else(|| node.error(format!("no `{key}`"), "give it"));
        let (name, sql) = (given("name")?.text()?, given("sql")?.text()?);
        if !is_query(sql) {
            let advice = "write a SELECT of the rows that must not be there";
            return Err(given("sql")?.error("a check that is no query", advice));
        }
        Ok(PlanCheck { name: name.to_owned(), sql: sql.to_owned() })
    };
    items.into_iter().enumerate().map(check).collect()
}

fn pace(root: Node<'_>, folder: &Path) -> Result<Pace> {
    if let Some(clients) = root.get("clients") {
        for key in ["rate", "arrivals"] {
            if let Some(item) = root.get(key) {
                return Err(item.error(format!("`{key}` in a closed loop"), "leave out `clients`, or this"));
            }
        }
        let think = root.get("think").map(|item| item.parsed(parse_duration, "give a time such as 10ms"));
        let think = think.transpose()?.unwrap_or_default();
        return Ok(Pace::Closed { clients: clients.count(1..=MAX_CONNECTIONS)? as usize, think });
    }
    if let Some(item) = root.get("think") {
        return Err(item.error("`think` without `clients`", "an open loop has a rate: leave it out"));
    }
    let shape = root.get("rate").map(|item| item.parsed(str::parse::<Shape>, "give 50k, or a shape"));
    let arrivals =
        root.get("arrivals").map(|item| item.parsed(str::parse::<Arrivals>, "give constant or poisson"));
    let mut arrivals = arrivals.transpose()?.unwrap_or(Arrivals::Poisson);
    if let Arrivals::Trace(path) = &mut arrivals {
        if let Some(item) = root.get("rate") {
            return Err(item.error("a rate beside a trace", "the trace has the times: leave `rate` out"));
        }
        *path = folder.join(&*path);
    }
    Ok(Pace::Open { shape: shape.transpose()?.unwrap_or(Shape::Constant(100.0)), arrivals })
}

fn tables(root: Node<'_>, folder: &Path) -> Result<Vec<PlanTable>> {
    let Some(item) = root.get("tables") else { return Ok(Vec::new()) };
    let mut tables = Vec::new();
    for (name, node) in item.table()?.tables()? {
        let of = format!("table {name}");
        let node = node.named(&of);
        node.allow(&["spec", "rows", "with"])?;
        let spec = node.get("spec").map(Item::text).transpose()?.unwrap_or(name);
        let dataset = DatasetName::in_folder(folder, spec).dataset(None);
        let dataset = dataset.map_err(|error| match node.get("spec") {
            Some(item) => item.error(error.what(), format!("{} {}", error.place(), error.advice())),
            None => {
                node.error(error.what(), "give `spec`: a built-in dataset, or the path of a dataset spec")
            }
        })?;
        let rows = node.get("rows").map_or(Ok(0), |item| item.count(0..=1 << 40))?;
        let with = node.get("with").map(Item::text).transpose()?.map(str::to_owned);
        tables.push(PlanTable { name: name.to_owned(), dataset: Arc::new(dataset), rows, with });
    }
    Ok(tables)
}
