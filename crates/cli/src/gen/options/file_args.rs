//! The options about how to write Parquet files.

use clap::Args;
use sawmill_generator::{
    BloomColumn, ColumnCompression, Dataset, Encoding, FileOptions, PageVersion, StatisticsLevel,
};
use sawmill_source::embedded_arrow_schema;

use crate::arguments::given::Given;
use crate::arguments::size_arg::bytes;
use crate::arguments::words::{YesNo, words};
use crate::error::Result;

/// How pages, column chunks and their statistics are written, by all commands that write Parquet.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How files are written")]
pub(crate) struct PageArgs {
    #[command(flatten)]
    pub given: Given,
    /// The compression codec of pages: none, snappy, lz4, zstd, zstd:LEVEL, gzip or brotli; for one column, for all
    /// columns of a struct, list or map, or for all other columns. May be repeated [default: none].
    #[arg(long, value_name = "[COLUMN=]CODEC")]
    pub compression: Vec<ColumnCompression>,
    /// The encoding of values: plain, dict, delta, delta-length, delta-bytearray or byte-stream-split, for
    /// one column or for every column whose type allows it. May be repeated [default: dict where values repeat: gen
    /// knows which do, convert stops at dictionaries of 1 MiB; else plain].
    #[arg(long, value_name = "[COLUMN=]ENCODING", value_parser = encoding)]
    pub encoding: Vec<(Option<String>, Encoding)>,
    /// The version of data pages.
    #[arg(long, value_enum, default_value = "1")]
    pub data_page_version: DataPageVersion,
    /// End a page when it reaches this size before compression, like 64KiB [default: 1MiB].
    #[arg(long, value_parser = bytes, allow_hyphen_values = true)]
    pub page_size: Option<u64>,
    /// Which statistics to write.
    #[arg(long, value_enum, default_value = "page")]
    pub statistics: Statistics,
    /// Whether to write page indexes.
    #[arg(long, value_enum, default_value = "yes")]
    pub page_index: YesNo,
    /// Write a Bloom filter for this column, with this share of false positives [default: 0.01]. May be
    /// repeated.
    #[arg(long, value_name = "COLUMN[:SHARE]", value_parser = bloom)]
    pub bloom: Vec<BloomColumn>,
}

/// How `sawmill gen` writes files.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "How files are written")]
pub(crate) struct FileArgs {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    pages: PageArgs,
    /// Write the CRC-32 of each page into its header, for readers to verify.
    #[arg(long)]
    page_checksums: bool,
    /// Whether to write the Arrow schema into the footer, where Arrow readers find time zones and the like. Only it
    /// describes durations and lists of a fixed size [default: yes for datasets with these].
    #[arg(long, value_enum)]
    arrow_schema: Option<YesNo>,
    /// Write a key and a value into the footer. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    key_value: Vec<(String, String)>,
}

words!(DataPageVersion => PageVersion {
    #[value(name = "1")]
    One as V1,
    #[value(name = "2")]
    Two as V2,
});
words!(Statistics => StatisticsLevel {
    /// No statistics.
    None,
    /// Bounds, null counts and sizes of column chunks.
    Chunk,
    /// Also for pages: in the column index or, without page indexes, in page headers.
    Page,
});

impl FileArgs {
    /// A given option.
    pub(crate) fn given(&self) -> Option<String> {
        self.given.first_of::<Self>(&[])
    }

    /// The options for files of `dataset`, without the column in the names of folders.
    ///
    /// # Errors
    /// The options contradict each other.
    pub(crate) fn options(&self, dataset: &Dataset, partition_by: Option<&str>) -> Result<FileOptions> {
        let pages = &self.pages;
        let mut options = FileOptions::default();
        options.set_compressions(&pages.compression)?;
        for (column, encoding) in &pages.encoding {
            match column {
                Some(column) => options.column_encodings.push((column.clone(), *encoding)),
                None => options.encoding = Some(*encoding),
            }
        }
        options.page_version = pages.data_page_version.into();
        options.page_bytes = pages.page_size.unwrap_or(options.page_bytes);
        options.statistics = pages.statistics.into();
        options.page_index = pages.page_index == YesNo::Yes;
        options.bloom.clone_from(&pages.bloom);
        options.page_checksums = self.page_checksums;
        options.key_values.clone_from(&self.key_value);
        let embeds =
            self.arrow_schema.map_or_else(|| dataset.needs_arrow_schema(), |given| given == YesNo::Yes);
        if embeds {
            options.key_values.push(embedded_arrow_schema(dataset, partition_by));
        }
        Ok(options)
    }
}

fn encoding(text: &str) -> Result<(Option<String>, Encoding), String> {
    match text.rsplit_once('=') {
        Some((column, encoding)) => Ok((Some(column.to_owned()), encoding.parse()?)),
        None => Ok((None, text.parse()?)),
    }
}

fn bloom(text: &str) -> Result<BloomColumn, String> {
    let Some((column, share)) = text.rsplit_once(':') else { return Ok(BloomColumn::new(text)) };
    let share = share.parse().map_err(|_| format!("{share:?} is not a number: write COLUMN:0.01"))?;
    let mut bloom = BloomColumn::new(column);
    bloom.false_positives = share;
    Ok(bloom)
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
