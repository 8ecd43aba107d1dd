//! The arguments for CrateDB alone.

use clap::Args;
use sawmill_cratedb::{Binary, CrateOptions, Dates, LongText, Objects, Times, Transport};

use crate::arguments::given::Given;
use crate::arguments::words::words;
use crate::error::Error;

words!(TransportArg => Transport {
    /// PostgreSQL wire if the server and the schema allow it, else HTTP.
    Auto,
    /// HTTP with bulk_args.
    Http,
    /// UNNEST over the PostgreSQL wire.
    Pg,
});
words!(ObjectsArg => Objects {
    /// OBJECT(STRICT): exactly these fields.
    Strict,
    /// OBJECT(DYNAMIC): later rows may add fields.
    Dynamic,
    /// OBJECT(IGNORED): stored as it is, without checks or indexes.
    Ignored,
});
words!(DatesArg => Dates {
    /// TIMESTAMP at midnight.
    Timestamp,
    /// TEXT in ISO 8601.
    Text,
});
words!(TimesArg => Times {
    /// TEXT in ISO 8601.
    Text,
    /// BIGINT in the file's unit.
    Bigint,
});
words!(BinaryArg => Binary {
    /// TEXT in base64.
    Base64,
    /// TEXT in hexadecimal digits.
    Hex,
});
words!(LongTextArg => LongText {
    /// Treat it as an error.
    Error,
    /// Text columns of any length, without index and column store.
    Noindex,
});

/// How to create and fill a table of CrateDB.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "CrateDB")]
pub(crate) struct CrateArgs {
    #[command(flatten)]
    given: Given,
    /// The protocol that carries rows [default: auto].
    #[arg(long, value_enum)]
    transport: Option<TransportArg>,
    /// Add a primary key column that holds each row's place in the source, so that later appends of the same
    /// rows add nothing. Modes create and replace load exactly once without it, and faster.
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, default_missing_value = "sawmill_row_key")]
    row_key: Option<String>,
    /// Load with neither a key nor batch tags: an interruption may leave rows of a batch in the table twice.
    #[arg(long)]
    at_least_once: bool,
    /// Compress request bodies.
    #[arg(long)]
    gzip: bool,
    /// The type for structs [default: strict].
    #[arg(long, value_enum, help_heading = "CrateDB types")]
    objects: Option<ObjectsArg>,
    /// The type for dates [default: timestamp].
    #[arg(long, value_enum, help_heading = "CrateDB types")]
    dates: Option<DatesArg>,
    /// The type for times of day [default: text].
    #[arg(long, value_enum, help_heading = "CrateDB types")]
    times: Option<TimesArg>,
    /// The encoding of bytes [default: base64].
    #[arg(long, value_enum, help_heading = "CrateDB types")]
    binary: Option<BinaryArg>,
    /// How to treat text over 32,766 bytes [default: error].
    #[arg(long, value_enum, help_heading = "CrateDB types")]
    long_text: Option<LongTextArg>,
    /// Number of shards of the new table.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shards: Option<u32>,
    /// Replicas of the new table: N or MIN-MAX.
    #[arg(long, value_name = "N", value_parser = replicas)]
    replicas: Option<String>,
    /// A parameter of the new table, such as mapping.total_fields.limit=3000. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = table_parameter)]
    with: Vec<(String, String)>,
    /// Do not index these columns.
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    no_index: Vec<String>,
    /// Leave all columns out of the column store.
    #[arg(long)]
    no_columnstore: bool,
}

fn table_parameter(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("give NAME=VALUE, such as mapping.total_fields.limit=3000".to_owned()),
    }
}

fn replicas(text: &str) -> Result<String, String> {
    let (least, most) = text.split_once('-').unwrap_or((text, "0"));
    match (least.parse::<u32>(), most == "all" || most.parse::<u32>().is_ok()) {
        (Ok(_), true) => Ok(text.to_owned()),
        _ => Err("give a number or a range such as 0-1 or 0-all".to_owned()),
    }
}

impl CrateArgs {
    /// The loader's options, with its defaults for omitted ones.
    pub(crate) fn options(&self, batch_rows: Option<usize>) -> CrateOptions {
        CrateOptions {
            transport: self.transport.map(Into::into).unwrap_or_default(),
            objects: self.objects.map(Into::into).unwrap_or_default(),
            dates: self.dates.map(Into::into).unwrap_or_default(),
            times: self.times.map(Into::into).unwrap_or_default(),
            binary: self.binary.map(Into::into).unwrap_or_default(),
            long_text: self.long_text.map(Into::into).unwrap_or_default(),
            shards: self.shards,
            replicas: self.replicas.clone(),
            with: self.with.clone(),
            no_index: self.no_index.clone(),
            no_columnstore: self.no_columnstore,
            row_key: self.row_key.clone(),
            at_least_once: self.at_least_once,
            gzip: self.gzip,
            batch_rows: batch_rows.unwrap_or(0),
            ..CrateOptions::default()
        }
    }

    /// Refuses these options: PostgreSQL lacks them.
    pub(crate) fn refuse_for_postgres(&self) -> Result<(), Error> {
        let Some(option) = self.given.first_of::<Self>(&[]) else { return Ok(()) };
        let what = format!("{option} is available for CrateDB only");
        Err(Error::usage(what, "--to", "give crate://host:4200, or leave the option out"))
    }
}
