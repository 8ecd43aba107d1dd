//! Conversion to and from the `parquet` crate's metadata: the same source for each version of the crate
//! (features `parquet-59` and `parquet-60`).

/// The methods of [`Footer`](crate::Footer) for one release of the crate, in the module of that release.
macro_rules! conversions {
    (
        $to:ident, $with_page_indexes:ident, $with_offset_indexes:ident, $unreadable:ident,
        $from:ident
    ) => {
        use self::page_indexes::Wanted;
        use self::parquet::file::metadata::ParquetMetaData;

        impl crate::Footer {
            /// The decoded row groups as metadata of this release of the `parquet` crate, with the columns of these
            /// leaves, which must all be decoded, or with all decoded columns that can be read. The latter excludes
            /// encrypted columns, those with types or codecs that the crate does not know
            /// ([`crate::ColumnChunk::readable`] says why), and the other columns of a map that holds one.
            ///
            /// Pass it to `ArrowReaderMetadata::try_new`; the reader then reads the pages from the same file. The
            /// columns of the result are renumbered in leaf order. Page indexes are not included.
            ///
            /// Costs what the crate takes to decode the wanted chunks, and a copy of their structs unless all are
            /// wanted. The crate's form of the schema stays with the [`Schema`](crate::Schema), up to 1,024 columns:
            /// the next conversion with the same columns costs less, of this footer or of another one that has the
            /// same schema from [`Options::schema`](crate::Options::schema), a [`Decoder`](crate::Decoder) or
            /// [`Footer::open_many`](crate::Footer::open_many).
            ///
            /// # Errors
            ///
            /// A column was not decoded, cannot be read ([`crate::ColumnChunk::readable`]) or is wanted without the
            /// other columns of its map; or its metadata is malformed.
            pub fn $to(&self, leaves: Option<&[usize]>) -> Result<ParquetMetaData, crate::Error> {
                metadata::to_parquet(self, leaves)
            }

            /// The same with the page indexes of the columns of the result, which are read from the file. They are
            /// what the crate reads with `PageIndexPolicy::Optional`: column indexes may be missing; if an offset index
            /// is, the crate's release 59 leaves out all of them. An index that is malformed, or whose pages are not
            /// within its column chunk, counts as missing.
            ///
            /// Only the indexes of these columns are read, neighbours together. Callers with I/O of their own fetch
            /// [`Footer::page_index_ranges`](crate::Footer::page_index_ranges) and pass them as
            /// [`FetchedRanges`](crate::FetchedRanges).
            ///
            /// # Errors
            ///
            /// As without page indexes; or bytes cannot be read.
            pub fn $with_page_indexes<R: crate::RangeReader + ?Sized>(
                &self,
                leaves: Option<&[usize]>,
                reader: &R,
            ) -> Result<ParquetMetaData, crate::Error> {
                page_indexes::read(self, leaves, Wanted::Both, reader)
            }

            /// The same without column indexes, which are not read: for readers that skip pages by their rows alone.
            ///
            /// # Errors
            ///
            /// As with all page indexes.
            pub fn $with_offset_indexes<R: crate::RangeReader + ?Sized>(
                &self,
                leaves: Option<&[usize]>,
                reader: &R,
            ) -> Result<ParquetMetaData, crate::Error> {
                page_indexes::read(self, leaves, Wanted::OffsetIndexes, reader)
            }

            /// The decoded columns that a conversion leaves out unless they are named, by their leaves, each with what
            /// is wrong with it.
            ///
            /// Costs some nanoseconds a chunk, and the making of each column's type.
            pub fn $unreadable(&self) -> Vec<(usize, crate::Error)> {
                metadata::unreadable(self)
            }

            /// Converts metadata of this release of the `parquet` crate to a footer, by way of the bytes that the crate
            /// writes for it.
            ///
            /// # Errors
            ///
            /// The crate cannot write the metadata.
            pub fn $from(metadata: &ParquetMetaData, options: &crate::Options) -> Result<Self, crate::Error> {
                metadata::from_parquet(metadata, options)
            }
        }
    };
}

pub(crate) mod kept;
mod repaired;
#[cfg(feature = "parquet-59")]
mod version_59;
#[cfg(feature = "parquet-59")]
pub use version_59::{annotated_59, enums_as_text_59};
#[cfg(feature = "parquet-60")]
#[allow(clippy::duplicate_mod, reason = "the same source, compiled for another version of the crate")]
mod version_60;
