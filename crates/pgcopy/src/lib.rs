//! Arrow arrays as rows of PostgreSQL's binary COPY format; lists, structs and maps as jsonb or as arrays and
//! composite values. It opens no sockets and needs no server: its output is bytes.
//!
//! ```text
//! RecordBatch ─ columns ─▶ converted ─ lay out: lengths of rows ─ write: column after column ─▶ buffer ─▶ emit(bytes, rows)
//!                                      └─────────── a block of rows at a time ───────────┘
//! ```
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use bytes::Bytes;
//! use sawmill_pgcopy::{Buffers, CopyEncoder, HEADER, TRAILER, ValueOptions, natural_columns};
//!
//! let id = Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef;
//! let name = Arc::new(StringArray::from(vec![Some("Ada"), None])) as ArrayRef;
//! let batch = RecordBatch::try_from_iter([("id", id), ("name", name)])?;
//! let columns = natural_columns(&batch.schema(), &ValueOptions::default())?;
//! let mut encoder = CopyEncoder::new(columns, Buffers::new(1 << 20));
//! let mut copy = HEADER.to_vec();
//! let mut emit = |rows: Bytes, _count: u64| -> Result<(), std::io::Error> {
//!     copy.extend_from_slice(&rows);
//!     Ok(())
//! };
//! encoder.batch(&batch, &mut emit)?;
//! encoder.flush(&mut emit)?;
//! copy.extend_from_slice(&TRAILER);
//! // COPY people (id, name) FROM STDIN (FORMAT binary)
//! assert!(copy.ends_with(&[0, 2, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2, 255, 255, 255, 255, 255, 255]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Types map by the table of [`PgType`]. The encoder rejects a value that its column cannot hold, with row
//! and column ([`Refused`]), after it has encoded the rows before it. It allocates nothing per row.
//!
//! | room | content |
//! |---|---|
//! | `arrays` | views of Arrow arrays for every layout: integers, bytes, dictionary keys, lists, marks of fields |
//! | `types` | PostgreSQL types, the fields that each accepts, and options for values that they cannot hold |
//! | `conversion` | converts values to the type of the column and checks that each fits exactly |
//! | `from_text` | parses text into values of other types: numbers, dates, addresses, JSON |
//! | `values` | encodes values for the wire: numbers, timestamps, intervals, arrays, composite values |
//! | `jsonb` | writes lists, structs and maps as jsonb, byte for byte as PostgreSQL prints it |
//! | `rows` | lays out the rows of a batch and writes its columns side by side into reusable buffers |

mod arrays;
mod conversion;
mod from_text;
mod jsonb;
mod rows;
mod types;
mod values;

pub use arrays::byte_strings::ByteStrings;
pub use arrays::checked_text::utf8;
pub use arrays::dictionary::Keys;
pub use arrays::fault::{Fault, shown};
pub use arrays::integers::Integers;
pub use arrays::lists::{Items, Lists, Offsets};
pub use arrays::marks::{INTERVAL_BYTES, is_enum, is_interval, is_json, is_uuid, value_type};
pub use arrays::parquet_interval::ParquetInterval;
pub use jsonb::json_column::write_array;
pub use jsonb::moment::write_clock;
pub use jsonb::text::{write_hex, write_uuid};
pub use rows::buffers::Buffers;
pub use rows::encoder::{Column, CopyEncoder, Emit, HEADER, Refused, Stop, TRAILER, natural_columns};
pub use rows::observer::{EncodedRows, RowObserver};
pub use types::column_type::{Attribute, ColumnType, Composite, MAX_DIMENSIONS, Part, item_of};
pub use types::pg_type::PgType;
pub use types::server_type::{ReadsText, ServerType};
pub use types::value_options::{Enums, Nanoseconds, Nul, ValueOptions};
pub use types::zone::Zone;
pub use values::element::NUL_ADVICE;
pub use values::{calendar, numeric};
