//! Errors of servers: whether a retry may help, and what to do about them.

use sawmill_profile::{Error, Kind};
use tokio_postgres::error::SqlState;

use crate::server_report::ServerReport;
use crate::untrusted::is_refusal;

/// An error of a connection or of the server behind it.
pub fn from_server(error: &tokio_postgres::Error, place: &str) -> Error {
    let Some(db) = error.as_db_error() else { return without_answer(error, place) };
    if is_of_records(error) {
        return Error::new(
            Kind::Server,
            "the records of this load were removed while it ran: by another load, in mode truncate or replace, or by hand",
        )
        .at(place)
        .advise(
            "the same command again loads all rows; where the table was not emptied, compare it with the files first (sawmill \
             verify)",
        );
    }
    // A row of COPY that has another form than the columns, which its context names. Proxies use the code for lost servers.
    let of_copy = *db.code() == SqlState::PROTOCOL_VIOLATION && db.where_().is_some();
    let kind = if of_copy { Kind::Server } else { kind_of(db.code()) };
    let mut what = format!("the server says: {}", db.message());
    // CrateDB gives the stack of its Java code as the context of an error, which helps no one who loads.
    let context = db.where_().filter(|context| !context.contains(".java:"));
    for more in [db.detail(), context].into_iter().flatten() {
        what += &format!(" ({})", more.replace('\n', "; "));
    }
    Error::new(kind, format!("{what} [{}]", db.code().code())).at(place).advise(advice_on(
        db.code(),
        db.message(),
        db.hint().unwrap_or_default(),
        kind,
    ))
}

/// An error that the server reported over a connection that hands out messages, or during a login.
pub fn from_report(report: &ServerReport, place: &str) -> Error {
    let code = SqlState::from_code(&report.code);
    let kind = kind_of(&code);
    let more = match report.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({})", detail.replace('\n', "; ")),
    };
    Error::new(kind, format!("the server says: {}{more} [{}]", report.message, report.code))
        .at(place)
        .advise(advice_on(&code, &report.message, &report.hint, kind))
}

/// A connection that broke after the server had answered, or was closed.
pub(crate) fn lost(error: &std::io::Error, place: &str) -> Error {
    let what = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the connection was lost".to_owned(),
        _ => format!("the connection was lost: {error}"),
    };
    Error::new(Kind::Connection, what).at(place).advise(RUN_AGAIN)
}

/// Whether the server answered that it takes no more connections: of this role, to this database, or at all.
pub(crate) fn is_full(error: &Error) -> bool {
    error.what().ends_with(&format!("[{}]", SqlState::TOO_MANY_CONNECTIONS.code()))
}

/// Whether the server answered that it takes no connections yet, as it starts up, or shuts down to start again. A standby
/// whose detail says so takes none at all.
pub(crate) fn is_starting(error: &Error) -> bool {
    let what = error.what();
    let code = format!("[{}]", SqlState::CANNOT_CONNECT_NOW.code());
    what.ends_with(&code) && !what.contains("Hot standby mode is disabled")
}

/// Advice after a lost connection.
const RUN_AGAIN: &str = "run the same command again: what was committed stays and is not loaded twice";

/// An error that is not an answer of the server: of the wire, or of the client before it sends.
fn without_answer(error: &tokio_postgres::Error, place: &str) -> Error {
    use std::error::Error as _;
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let text = error.to_string();
    // After the login, unreadable bytes mean that the connection was cut or the server crashed. The other
    // errors are the client's refusals before it sends.
    let ours = ["configuration", "serializing", "deserializing", "expected"];
    let is_refused = error.source().and_then(|cause| cause.downcast_ref()).is_some_and(is_refusal);
    let is_lost = text.contains("unexpected message");
    let what = match error.is_closed() || cause.contains("bytes remaining on stream") {
        true => "the connection was lost".to_owned(),
        false => format!("{text}{cause}"),
    };
    match is_refused || !is_lost && ours.iter().any(|word| text.contains(word)) {
        true => Error::new(Kind::Server, what).at(place),
        false => Error::new(Kind::Connection, what).at(place).advise(RUN_AGAIN),
    }
}

/// Whether a retry may help against an error of this code.
fn kind_of(code: &SqlState) -> Kind {
    let class = code.code().get(..2).unwrap_or_default();
    let passing = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::TOO_MANY_CONNECTIONS,
    ];
    if class == "08" || passing.contains(code) { Kind::Connection } else { Kind::Server }
}

/// The advice on an error, by its code.
fn advice_on<'a>(code: &SqlState, message: &str, hint: &'a str, kind: Kind) -> &'a str {
    match code {
        &SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "check user and password: they come from the address, PGUSER, PGPASSWORD or ~/.pgpass; the server's \
             pg_hba.conf says which users may connect from where"
        }
        &SqlState::INVALID_CATALOG_NAME => "create the database, or name another in the address",
        &SqlState::FEATURE_NOT_SUPPORTED | &SqlState::INSUFFICIENT_PRIVILEGE
            if message.contains("row-level security") =>
        {
            POLICIES
        }
        &SqlState::INSUFFICIENT_PRIVILEGE => {
            "ask the owner for the permission; a load needs CREATE on the database once, for the schema _sawmill, or, where \
             another user owns that or the one that --checkpoint-schema names, USAGE and CREATE on it and all rights on \
             its tables; besides CREATE on a new table's schema, INSERT and SELECT on one that exists"
        }
        &SqlState::INVALID_SCHEMA_NAME => "create the schema, or name another in the table's name",
        &SqlState::DISK_FULL => disk_full(message),
        &SqlState::QUERY_CANCELED => {
            "if a time limit of the server is too short for the load, lift it: --set statement_timeout=0"
        }
        // transaction_timeout exists since version 17.
        code if code.code() == "25P04" => {
            "the server's limit for transactions is too short for the load, lift it: --set transaction_timeout=0"
        }
        &SqlState::LOCK_NOT_AVAILABLE => {
            "wait for the end of its transaction, or allow more time (--lock-timeout), and run the same command again"
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION => {
            "nothing can be written there: name the primary server if this is a standby, else see \
             default_transaction_read_only"
        }
        &SqlState::FEATURE_NOT_SUPPORTED if message.contains("during recovery") => {
            "nothing can be written there, as it is a standby: name the primary server, or all servers of the cluster with \
             target_session_attrs=read-write"
        }
        &SqlState::TOO_MANY_CONNECTIONS => {
            "use fewer connections (--connections 1 needs only one where a role may have no more), end other sessions, or allow \
             more: CONNECTION LIMIT of the role or the database, max_connections of the server"
        }
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => NOT_THROUGH_A_POOL,
        _ if kind == Kind::Connection => RUN_AGAIN,
        _ => hint,
    }
}

/// The advice where the policies of a table hold for the user.
pub const POLICIES: &str = "use a role that the policies of the table do not bind: one with BYPASSRLS, a superuser, or \
     the owner, unless the table forces them on the owner, too";

/// The advice where a pooler hands out the server's processes by transactions.
pub(crate) const NOT_THROUGH_A_POOL: &str = "a load holds a lock and prepared statements of its session: name the \
     server itself in the address, or a pool in session mode (pgbouncer: pool_mode = session)";

/// The advice for a full disk. The file's name says which one it was.
fn disk_full(message: &str) -> &'static str {
    if message.contains("pg_tblspc/") {
        "make room in that tablespace (the number behind pg_tblspc/ is its oid in pg_tablespace) and run the same \
             command again"
    } else {
        "make room on the server's disk and run the same command again"
    }
}

/// Whether the server refuses only a row: data exceptions, violated constraints, exceptions of triggers, and
/// rows or index entries that do not fit into a page
/// (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).
pub fn is_about_rows(error: &tokio_postgres::Error) -> bool {
    let class = error.code().and_then(|code| code.code().get(..2));
    !is_of_records(error) && matches!(class, Some("22" | "23" | "44" | "54" | "P0"))
}

/// Whether the record of a load was missing when one of its units was recorded.
fn is_of_records(error: &tokio_postgres::Error) -> bool {
    let constraint = error.as_db_error().and_then(|db| db.constraint()).unwrap_or_default();
    error.code() == Some(&SqlState::FOREIGN_KEY_VIOLATION)
        && ["units_load_id_fkey", "units_unlogged_load_id_fkey"].contains(&constraint)
}

/// The line of a COPY that an error is about, from 1: the row, in binary format. The error's
/// context has it, as in `COPY trips, line 12, column fare`.
pub fn copy_line(error: &tokio_postgres::Error) -> Option<usize> {
    let context = error.as_db_error()?.where_()?;
    let copy = context.lines().find(|line| line.starts_with("COPY "))?;
    // The word before the number is in the server's language.
    copy.split(", ").skip(1).find_map(|part| {
        let (word, number) = part.split_once(' ')?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        (!word.contains(|c: char| c.is_ascii_punctuation())).then(|| number[..digits].parse().ok())?
    })
}

/// An endpoint that cannot be reached.
pub(crate) fn unreachable(what: impl std::fmt::Display, place: String) -> Error {
    Error::new(Kind::Connection, format!("cannot reach the server: {what}"))
        .at(place)
        .advise("check that the server is running and that host and port are right")
}
