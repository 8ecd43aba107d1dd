//! By which transport rows go.

use sawmill_source::{Kind, Result};

use crate::connect::pg;
use crate::connect::sql::Sql;
use crate::options::Transport;
use crate::records::checkpoint::LoadRow;
use crate::table::columns::Key;
use crate::target::CrateDb;
use crate::write::carried::Chosen;

/// The transport of the blocks. An explicitly requested transport that is not available is an error.
pub(super) fn choose_transport(crate_db: &CrateDb, key: &Key, sql: &Sql<'_>) -> Result<Chosen> {
    let wanted = crate_db.options.transport;
    if wanted == Transport::Http {
        return Ok(Chosen::Http("--transport http".to_owned()));
    }
    if wanted == Transport::Auto && *key == Key::None && crate_db.options.rejects.is_some() {
        return Ok(Chosen::Http(
            "without a key only HTTP tells which rows of a batch were refused".to_owned(),
        ));
    }
    match pg::open(&pg::server(sql.cluster(), 0), sql.control) {
        Ok(_) => Ok(Chosen::Pg),
        Err(error) if error.kind() == Kind::Cancelled || wanted == Transport::Pg => Err(error),
        Err(error) => {
            let port = crate_db.server.pg_port;
            Ok(Chosen::Http(format!("no PostgreSQL wire of CrateDB at port {port}: {}", error.what())))
        }
    }
}

/// The PostgreSQL wire does not tell which rows of a batch were in the table before. Verification needs to know if
/// the table holds rows that cannot be distinguished from the load's.
pub(super) fn which_tells_rows(chosen: Chosen, record: &LoadRow, key: &Key) -> Chosen {
    let needs = *key != Key::None && record.load.before.as_ref().is_some_and(|before| before.rows > 0);
    match chosen {
        Chosen::Pg if needs => {
            let reason = "to verify an append by the table's key, it has to be known which rows were there, which only HTTP tells";
            Chosen::Http(reason.to_owned())
        }
        chosen => chosen,
    }
}
