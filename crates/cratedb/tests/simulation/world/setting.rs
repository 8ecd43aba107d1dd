//! The setting of a run.

use sawmill_cratedb::{CrateDb, CrateOptions, Transport};
use sawmill_loader::Mode;

use super::draw::Draw;

/// Another stream of numbers than the rest of the setting.
const ROWS_OF_FILES: u64 = 0x7468_659c;

/// How rows can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    Tags,
    RowKey,
    OwnKey,
}

/// The setting of a run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub mode: Mode,
    pub repeated: Repeated,
    pub files: u64,
    pub degree: usize,
    pub unit_rows: u64,
    /// Rows of a request.
    pub batch_rows: usize,
    pub verify: bool,
    /// Rows of the table before.
    pub before: u64,
    /// Acknowledged rows may not be on the disk.
    pub asynchronous: bool,
    /// A rename leaves the shards open.
    pub keeps_shards_open: bool,
    /// `KILL` ends nothing.
    pub kills_nothing: bool,
}

impl Setting {
    pub fn in_words(&self) -> String {
        format!("{self:?}")
    }

    pub fn drawn(draw: &mut Draw) -> Self {
        let mode = draw.of(&[Mode::Create, Mode::Create, Mode::Replace, Mode::Append]);
        let repeated = match mode {
            Mode::Append => draw.of(&[Repeated::RowKey, Repeated::OwnKey]),
            _ => draw.of(&[Repeated::Tags, Repeated::Tags, Repeated::RowKey, Repeated::OwnKey]),
        };
        Self {
            mode,
            repeated,
            files: draw.of(&[1, 1, 1, 2]),
            degree: draw.of(&[1, 1, 2, 2, 3]),
            unit_rows: draw.between(1, 3),
            batch_rows: draw.of(&[1, 2, 4, 20]),
            verify: draw.one_in(3),
            before: draw.below(3),
            asynchronous: mode != Mode::Append && draw.one_in(4),
            keeps_shards_open: draw.one_in(3),
            kills_nothing: draw.one_in(4),
        }
    }

    /// The statement that makes the table before the first load; `None` if there is none.
    pub fn table_before(&self) -> Option<String> {
        let columns = match (self.mode, self.repeated) {
            (Mode::Create, _) => return None,
            (Mode::Replace, _) if self.before == 0 => return None,
            (Mode::Append, Repeated::RowKey) => "\"place\" TEXT PRIMARY KEY, \"value\" BIGINT",
            (Mode::Append, _) => "\"value\" BIGINT PRIMARY KEY",
            _ => "\"value\" BIGINT",
        };
        Some(format!("CREATE TABLE \"doc\".\"rows\" ({columns})"))
    }

    /// Whether the table of an append has some of the files' rows before the first load: another program brought them.
    /// The seeds of `failed.rs` draw none, but the last.
    pub fn has_rows_of_files(&self, seed: u64) -> bool {
        let by_own_key = self.mode == Mode::Append && self.repeated == Repeated::OwnKey;
        by_own_key && Draw::new(seed ^ ROWS_OF_FILES).one_in(3)
    }

    /// The table as the command names it.
    pub fn target(&self) -> sawmill_source::Result<CrateDb> {
        let with = self.asynchronous.then(|| ("translog.durability".to_owned(), "ASYNC".to_owned()));
        let options = CrateOptions {
            transport: Transport::Http,
            batch_rows: self.batch_rows,
            with: with.into_iter().collect(),
            row_key: (self.repeated == Repeated::RowKey).then(|| "place".to_owned()),
            primary_key: match self.repeated {
                Repeated::OwnKey if self.mode != Mode::Append => vec!["value".to_owned()],
                _ => Vec::new(),
            },
            ..CrateOptions::default()
        };
        let target = CrateDb::new("crate://cluster/doc".parse()?, "rows".parse()?);
        Ok(target.mode(self.mode).options(options))
    }
}
