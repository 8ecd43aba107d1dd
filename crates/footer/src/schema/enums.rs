//! The enumerations of `parquet.thrift`, under the format's own names.
//!
//! A number unknown to this version is kept as `Unknown`, so that a new codec or encoding makes one column
//! unreadable but not the rest of the file.

use std::fmt;

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
            /// A number unknown to this version of the format.
            Unknown(i32),
        }

        impl $name {
            /// Converts a number from the file.
            #[inline]
            pub const fn from_number(number: i32) -> Self {
                match number {
                    $($value => Self::$variant,)*
                    other => Self::Unknown(other),
                }
            }

            /// The number as stored in the file.
            pub const fn number(self) -> i32 {
                match self {
                    $(Self::$variant => $value,)*
                    Self::Unknown(number) => number,
                }
            }

            /// Whether this version of the format knows the number.
            pub const fn is_known(self) -> bool {
                !matches!(self, Self::Unknown(_))
            }

            pub(crate) const fn name_of(number: i32) -> Option<&'static str> {
                match number {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant => f.pad($text),)*
                    Self::Unknown(number) => write!(f, "unknown ({number})"),
                }
            }
        }
    };
}

enumeration! {
    /// How the values of a column are stored (`Type`).
    PhysicalType {
        /// One bit per value.
        Boolean = 0, "BOOLEAN";
        /// Four bytes, little endian.
        Int32 = 1, "INT32";
        /// Eight bytes, little endian.
        Int64 = 2, "INT64";
        /// Twelve bytes: nanoseconds of the day and a Julian day. Deprecated.
        Int96 = 3, "INT96";
        /// A four-byte IEEE 754 number.
        Float = 4, "FLOAT";
        /// An eight-byte IEEE 754 number.
        Double = 5, "DOUBLE";
        /// Bytes of any length.
        ByteArray = 6, "BYTE_ARRAY";
        /// Byte arrays of length `type_length`.
        FixedLenByteArray = 7, "FIXED_LEN_BYTE_ARRAY";
    }
}

impl PhysicalType {
    /// The number of bytes of each value; `length` is the element's, for byte arrays of one length. `None` for byte
    /// arrays of any length, and for bits.
    pub fn width(self, length: Option<i32>) -> Option<usize> {
        match self {
            Self::Int32 | Self::Float => Some(4),
            Self::Int64 | Self::Double => Some(8),
            Self::Int96 => Some(12),
            Self::FixedLenByteArray => length.and_then(|length| usize::try_from(length).ok()),
            Self::Boolean | Self::ByteArray | Self::Unknown(_) => None,
        }
    }
}

enumeration! {
    /// The annotation that `LogicalType` superseded (`ConvertedType`).
    ConvertedType {
        /// Text in UTF-8.
        Utf8 = 0, "UTF8";
        /// A map.
        Map = 1, "MAP";
        /// The repeated group of a map.
        MapKeyValue = 2, "MAP_KEY_VALUE";
        /// A list.
        List = 3, "LIST";
        /// The text of an enumeration value.
        Enum = 4, "ENUM";
        /// An unscaled decimal; the schema element holds scale and precision.
        Decimal = 5, "DECIMAL";
        /// Days since the Unix epoch.
        Date = 6, "DATE";
        /// Milliseconds since midnight.
        TimeMillis = 7, "TIME_MILLIS";
        /// Microseconds since midnight.
        TimeMicros = 8, "TIME_MICROS";
        /// Milliseconds since the Unix epoch.
        TimestampMillis = 9, "TIMESTAMP_MILLIS";
        /// Microseconds since the Unix epoch.
        TimestampMicros = 10, "TIMESTAMP_MICROS";
        /// An 8-bit unsigned integer.
        UInt8 = 11, "UINT_8";
        /// A 16-bit unsigned integer.
        UInt16 = 12, "UINT_16";
        /// A 32-bit unsigned integer.
        UInt32 = 13, "UINT_32";
        /// A 64-bit unsigned integer.
        UInt64 = 14, "UINT_64";
        /// An 8-bit signed integer.
        Int8 = 15, "INT_8";
        /// A 16-bit signed integer.
        Int16 = 16, "INT_16";
        /// A 32-bit signed integer.
        Int32 = 17, "INT_32";
        /// A 64-bit signed integer.
        Int64 = 18, "INT_64";
        /// A JSON document.
        Json = 19, "JSON";
        /// A BSON document.
        Bson = 20, "BSON";
        /// Months, days and milliseconds, four bytes each.
        Interval = 21, "INTERVAL";
    }
}

enumeration! {
    /// How often a field occurs in its parent (`FieldRepetitionType`).
    Repetition {
        /// Exactly once.
        Required = 0, "REQUIRED";
        /// Once or not at all.
        Optional = 1, "OPTIONAL";
        /// Any number of times.
        Repeated = 2, "REPEATED";
    }
}

enumeration! {
    /// How the pages of a column chunk are compressed (`CompressionCodec`).
    Codec {
        /// Not at all.
        Uncompressed = 0, "UNCOMPRESSED";
        /// Snappy.
        Snappy = 1, "SNAPPY";
        /// Gzip.
        Gzip = 2, "GZIP";
        /// LZO.
        Lzo = 3, "LZO";
        /// Brotli.
        Brotli = 4, "BROTLI";
        /// LZ4 in Hadoop's framing. Deprecated.
        Lz4 = 5, "LZ4";
        /// Zstandard.
        Zstd = 6, "ZSTD";
        /// LZ4 blocks without framing.
        Lz4Raw = 7, "LZ4_RAW";
    }
}

enumeration! {
    /// How values are laid out in a page (`Encoding`).
    Encoding {
        /// One after the other.
        Plain = 0, "PLAIN";
        /// A dictionary (in data pages of old writers: its indices). Deprecated.
        PlainDictionary = 2, "PLAIN_DICTIONARY";
        /// Runs and bit-packed groups.
        Rle = 3, "RLE";
        /// Bit-packed levels. Deprecated.
        BitPacked = 4, "BIT_PACKED";
        /// Differences, bit-packed in blocks.
        DeltaBinaryPacked = 5, "DELTA_BINARY_PACKED";
        /// Lengths as differences, then the bytes.
        DeltaLengthByteArray = 6, "DELTA_LENGTH_BYTE_ARRAY";
        /// Shared prefixes and suffixes.
        DeltaByteArray = 7, "DELTA_BYTE_ARRAY";
        /// Indices into a dictionary.
        RleDictionary = 8, "RLE_DICTIONARY";
        /// The first bytes of all values, then the second bytes, and so on.
        ByteStreamSplit = 9, "BYTE_STREAM_SPLIT";
        /// Decimal-like floating-point numbers as scaled integers.
        Alp = 10, "ALP";
    }
}

enumeration! {
    /// The type of a page (`PageType`).
    PageType {
        /// Levels and values.
        DataPage = 0, "DATA_PAGE";
        /// Never used.
        IndexPage = 1, "INDEX_PAGE";
        /// The values of a dictionary.
        DictionaryPage = 2, "DICTIONARY_PAGE";
        /// Uncompressed levels and values.
        DataPageV2 = 3, "DATA_PAGE_V2";
    }
}

enumeration! {
    /// How the bounds of a chunk's pages are ordered (`BoundaryOrder`).
    BoundaryOrder {
        /// In no order.
        Unordered = 0, "UNORDERED";
        /// Never decreasing.
        Ascending = 1, "ASCENDING";
        /// Never increasing.
        Descending = 2, "DESCENDING";
    }
}

enumeration! {
    /// How the edges between a geography's points run (`EdgeInterpolationAlgorithm`).
    EdgeInterpolationAlgorithm {
        /// Great circles.
        Spherical = 0, "SPHERICAL";
        /// Vincenty's formulae.
        Vincenty = 1, "VINCENTY";
        /// Thomas's formulae.
        Thomas = 2, "THOMAS";
        /// Andoyer's formulae.
        Andoyer = 3, "ANDOYER";
        /// Karney's algorithm.
        Karney = 4, "KARNEY";
    }
}

/// The order of a column's bounds (`ColumnOrder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnOrder {
    /// The order of the column's logical or physical type.
    TypeOrder,
    /// IEEE 754's total order.
    Ieee754TotalOrder,
    /// The order of INT96 timestamps.
    Int96TimestampOrder,
    /// An order unknown to this version: the union's field id, or 0 for an empty union.
    Unknown(i16),
}

/// The set of encodings that occur in a column chunk.
///
/// Bits 0 to 30 represent the encodings with those numbers; the top bit represents any other number,
/// including negative ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EncodingSet(u32);

impl EncodingSet {
    const BEYOND: u32 = 1 << 31;

    pub(crate) fn with(self, number: i32) -> Self {
        match u32::try_from(number) {
            Ok(bit) if bit < 31 => Self(self.0 | 1 << bit),
            _ => Self(self.0 | Self::BEYOND),
        }
    }

    /// The set as bits: bit *n* for the encoding with number *n*, the top bit for all numbers from 31.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Whether `encoding` is in the set. Numbers from 31 are not distinguished.
    pub fn contains(self, encoding: Encoding) -> bool {
        let single = Self::default().with(encoding.number());
        self.0 & single.0 != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this version of the format knows every encoding in the set.
    pub fn all_known(self) -> bool {
        self.0 & Self::BEYOND == 0 && self.iter().all(Encoding::is_known)
    }

    /// The encodings below 31, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Encoding> {
        (0..31).filter(move |bit| self.0 & (1 << bit) != 0).map(Encoding::from_number)
    }
}

impl fmt::Display for EncodingSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<String> = self.iter().map(|encoding| encoding.to_string()).collect();
        if self.0 & Self::BEYOND != 0 {
            names.push("unknown".to_string());
        }
        f.write_str(&names.join(", "))
    }
}
