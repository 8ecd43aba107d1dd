//! Types of columns without an encoder: the server turns text into their wire format, over a separate
//! connection.
//!
//! The rows are then sent, summed and compared like all others. A cast that would round or cut a value is
//! refused: the server's own output shows it.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use sawmill_loader::{LoadOptions, backoff};
use sawmill_pgcopy::{ColumnType, ReadsText, ServerType};
use sawmill_pgwire::{Connection, Server};
use sawmill_profile::Profile;
use sawmill_source::{Control, Error, Kind, Result};
use tokio_postgres::types::{FromSql, Type};

/// Raised never: one question takes little time, and the load looks at its own flag between batches.
static NEVER: AtomicBool = AtomicBool::new(false);

/// The SQL of the type without bounds that `a.atttypid` is: the one below domains, without a modifier.
pub(crate) const UNBOUND: &str = "(WITH RECURSIVE below(oid, base) AS (\
     SELECT t.oid, t.typbasetype UNION ALL SELECT d.oid, d.typbasetype FROM below \
     JOIN pg_catalog.pg_type d ON d.oid = below.base) \
     SELECT pg_catalog.format_type(oid, -1) FROM below WHERE base = 0)";

/// The SQL of the ways, by their names in [`exact`], in which types within `t` lose a part of a text; and `text` if one of
/// them has no wire format.
pub(crate) const LOSSES: &str = "ARRAY(WITH RECURSIVE within(oid, is_inner, is_bound) AS (\
     SELECT t.oid, false, false UNION SELECT part.oid, part.is_inner, part.is_bound FROM within w CROSS JOIN LATERAL (\
       SELECT d.typbasetype, w.is_inner, w.is_inner AND d.typtypmod >= 0 FROM pg_catalog.pg_type d \
         WHERE d.oid = w.oid AND d.typtype = 'd' \
       UNION ALL SELECT e.typelem, true, false FROM pg_catalog.pg_type e \
         WHERE e.oid = w.oid AND e.typcategory = 'A' AND e.typelem <> 0 \
       UNION ALL SELECT f.atttypid, true, f.atttypmod >= 0 FROM pg_catalog.pg_type c \
         JOIN pg_catalog.pg_attribute f ON f.attrelid = c.typrelid AND f.attnum > 0 AND NOT f.attisdropped \
         WHERE c.oid = w.oid AND c.typtype = 'c' \
       UNION ALL SELECT r.rngsubtype, true, false FROM pg_catalog.pg_range r \
         WHERE w.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)\
     ) part(oid, is_inner, is_bound)) \
     SELECT DISTINCT loss FROM within w JOIN pg_catalog.pg_type p USING (oid) CROSS JOIN LATERAL unnest(ARRAY[\
       CASE WHEN p.typreceive = 0 OR p.typsend = 0 THEN 'text' END, \
       CASE WHEN w.is_bound OR p.oid = 18 OR w.is_inner AND p.oid = 790 THEN 'digits' \
         WHEN p.oid = 3614 THEN 'positions' WHEN p.typname = 'hstore' THEN 'pairs' END]) loss \
     WHERE loss IS NOT NULL)";

/// A type that the server reads.
#[derive(Debug)]
struct Reader {
    name: String,
    base: String,
    is_text: bool,
    sql: String,
    asker: Arc<Asker>,
}

/// A connection for the types of a table's columns, once one of them is needed.
pub(crate) struct Asker {
    server: Server,
    connection: Mutex<Option<Connection>>,
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Asker")
    }
}

impl Asker {
    /// Prepares questions to a server; connects with the first one.
    pub(crate) fn new(server: &Server) -> Arc<Self> {
        Arc::new(Self { server: server.clone(), connection: Mutex::new(None) })
    }
}

/// The type for SQL's `name`; `unbound` is the same without a modifier and below domains, `losses` are its [`LOSSES`].
pub(crate) fn of_server(asker: &Arc<Asker>, name: &str, unbound: &str, losses: &[String]) -> ColumnType {
    let exact = exact(name, unbound, losses);
    let is_text = losses.iter().any(|loss| loss == "text");
    let wire = if is_text { "::text" } else { "" };
    let sql = format!(
        "SELECT (x::{name}){wire}, {exact}, (x::{name})::text FROM unnest($1::text[]) WITH ORDINALITY AS given(x, n) ORDER BY n"
    );
    let reader =
        Reader { name: name.to_owned(), base: unbound.to_owned(), is_text, sql, asker: Arc::clone(asker) };
    ColumnType::OfServer(ServerType(Arc::new(reader)))
}

/// The condition that the cast of the text `x` loses nothing of it.
fn exact(name: &str, unbound: &str, losses: &[String]) -> String {
    let stored = format!("(x::{name})::text");
    // The digits tell whether the cast of money rounded, whatever signs separate them.
    let digits = |text: &str| format!("trim('0' FROM pg_catalog.regexp_replace({text}, '[^0-9]', '', 'g'))");
    // Nothing stores a time with more than six digits behind its seconds.
    let finer = |text: &str| format!("{text} ~ ':[0-9]{{2}}[.][0-9]{{7}}'");
    let pairs = |text: &str| {
        let plain = format!("pg_catalog.replace({text}, '\\', '')");
        format!("pg_catalog.length({plain}) - pg_catalog.length(pg_catalog.replace({plain}, '=>', ''))")
    };
    let mut all = vec![match unbound {
        "money" => format!("{} = {}", digits("x"), digits("(x::money)::text")),
        _ if unbound.rsplit('.').next() == Some("geometry") => {
            // A shape without a reference system gets the column's: a flag in the fifth byte, and four bytes more.
            let part = |from: &str| format!("pg_catalog.substr({stored}, {from})");
            let without = format!(
                "{} || pg_catalog.translate({}, '26AE', '048C') || {} || {}",
                part("1, 8"),
                part("9, 1"),
                part("10, 1"),
                part("19")
            );
            format!("(x::{unbound})::text IN ({stored}, {without})")
        }
        _ => format!(
            "{stored} IS NOT DISTINCT FROM (x::{unbound})::text AND ({} OR NOT {})",
            finer(&stored),
            finer("x")
        ),
    }];
    all.extend(losses.iter().filter(|loss| *loss != "text").map(|loss| match loss.as_str() {
        // A key that comes twice keeps one of its values.
        "pairs" => format!("{} = {}", pairs("x"), pairs(&stored)),
        // Positions are limited, in size and number.
        "positions" => format!("(x !~ ':[0-9]' OR x = {stored})"),
        // An inner number, time or text has a modifier, is money or a single byte: each rounds or cuts in its own way.
        _ => format!("x = {stored}"),
    }));
    all.join(" AND ")
}

/// Any value in its wire format.
struct Wire(Vec<u8>);

impl<'a> FromSql<'a> for Wire {
    fn from_sql(
        _: &Type,
        raw: &'a [u8],
    ) -> std::result::Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Wire formats, or why the server refuses a text.
type Read = Vec<std::result::Result<Vec<u8>, String>>;

impl Reader {
    /// Asks for all of these texts at once.
    fn ask(&self, texts: &[&str]) -> Result<Read> {
        let phase = Profile::new().phase("read text");
        let control = Control::new(&NEVER, &phase);
        let mut held = self.asker.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut attempt = 0;
        loop {
            let connection = match held.take() {
                Some(connection) => Ok(connection),
                None => Connection::open(&self.asker.server, &control),
            };
            let asked = connection.and_then(|connection| {
                let rows = connection.query(&control, &self.sql, &[&texts]);
                let read = rows.and_then(|rows| rows.iter().map(|row| read(&connection, row)).collect());
                if !matches!(&read, Err(error) if error.kind() == Kind::Connection) {
                    *held = Some(connection);
                }
                read
            });
            match asked {
                Err(error)
                    if error.kind() == Kind::Connection && attempt < LoadOptions::default().retries =>
                {
                    control.sleep(backoff(attempt))?;
                    attempt += 1;
                }
                asked => return asked,
            }
        }
    }

    /// The same; of texts that the server refuses together it is asked by halves.
    fn ask_by_halves(&self, texts: &[&str]) -> Result<Read> {
        match (self.ask(texts), texts) {
            (Err(error), [_]) if error.kind() == Kind::Server => Ok(vec![Err(error.what().to_owned())]),
            (Err(error), _) if error.kind() == Kind::Server => {
                let (first, second) = texts.split_at(texts.len() / 2);
                let mut read = self.ask_by_halves(first)?;
                read.extend(self.ask_by_halves(second)?);
                Ok(read)
            }
            (asked, _) => asked,
        }
    }
}

fn read(connection: &Connection, row: &tokio_postgres::Row) -> Result<std::result::Result<Vec<u8>, String>> {
    let Wire(wire) = connection.get(row, 0)?;
    Ok(match connection.get::<Option<bool>>(row, 1)? {
        Some(true) => Ok(wire),
        _ => Err(format!("the server would store {} instead", connection.get::<String>(row, 2)?)),
    })
}

impl ReadsText for Reader {
    fn name(&self) -> &str {
        &self.name
    }

    fn base(&self) -> &str {
        &self.base
    }

    fn is_text(&self) -> bool {
        self.is_text
    }

    fn wire(&self, texts: &[&str]) -> std::result::Result<Read, String> {
        let failed = |error: Error| format!("{} cannot be read: {error}", self.name);
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        match self.ask(texts) {
            Err(error) if error.kind() == Kind::Server => {
                // If it also fails without values, it is not about them.
                self.ask(&[]).map_err(failed)?;
                self.ask_by_halves(texts).map_err(failed)
            }
            asked => asked.map_err(failed),
        }
    }
}
