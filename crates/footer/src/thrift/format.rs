//! The structs of `parquet.thrift` for footers and page indexes, as tables of field ids, names and types.
//! They provide the path of a faulty offset and the annotated dump.
//!
//! Source:
//! [parquet.thrift](https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift), as
//! of August 2026.

use FieldKind::{Binary, Bool, Double, Enum, I8, I16, I32, I64, List, Struct, Text};

use crate::schema::enums::{
    BoundaryOrder, Codec, ConvertedType, EdgeInterpolationAlgorithm, Encoding, PageType, PhysicalType,
    Repetition,
};
use crate::thrift::cursor;

/// The type of a field or of a list's elements.
pub(crate) enum FieldKind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    Text,
    /// An i32 whose values have names.
    Enum(fn(i32) -> Option<&'static str>),
    Struct(&'static StructDef),
    List(&'static FieldKind),
}

impl FieldKind {
    /// The wire type of a list element, and of a field unless it is a bool.
    fn wire(&self) -> u8 {
        match self {
            Bool => cursor::TRUE,
            I8 => cursor::BYTE,
            I16 => cursor::I16,
            I32 | Enum(_) => cursor::I32,
            I64 => cursor::I64,
            Double => cursor::DOUBLE,
            Binary | Text => cursor::BINARY,
            Struct(_) => cursor::STRUCT,
            List(_) => cursor::LIST,
        }
    }

    /// Whether a field of this kind has the wire type; a bool's wire type is its value.
    pub fn is(&self, wire: u8) -> bool {
        wire == self.wire() || matches!((self, wire), (Bool, cursor::FALSE))
    }

    /// The name of the wire type, for messages.
    pub fn wire_name(&self) -> &'static str {
        cursor::wire_name(self.wire())
    }

    /// The name of a list of these, for messages.
    pub fn list_name(&self) -> &'static str {
        match self {
            Struct(_) => "list of structs",
            Binary | Text => "list of binary",
            _ => "list of numbers",
        }
    }
}

/// A struct or union.
pub(crate) struct StructDef {
    pub name: &'static str,
    pub fields: &'static [FieldDef],
}

/// A field of a struct.
pub(crate) struct FieldDef {
    pub id: i16,
    pub name: &'static str,
    pub kind: FieldKind,
}

impl StructDef {
    const fn fields(self, fields: &'static [FieldDef]) -> Self {
        Self { fields, ..self }
    }

    /// The field with an id, if this version of the format has it.
    pub fn field(&self, id: i16) -> Option<&'static FieldDef> {
        self.fields.iter().find(|field| field.id == id)
    }
}

const fn named(name: &'static str) -> StructDef {
    StructDef { name, fields: &[] }
}

const fn field(id: i16, name: &'static str, kind: FieldKind) -> FieldDef {
    FieldDef { id, name, kind }
}

pub(crate) static FILE_META_DATA: StructDef = named("FileMetaData").fields(&[
    field(1, "version", I32),
    field(2, "schema", List(&Struct(&SCHEMA_ELEMENT))),
    field(3, "num_rows", I64),
    field(4, "row_groups", List(&Struct(&ROW_GROUP))),
    field(5, "key_value_metadata", List(&Struct(&KEY_VALUE))),
    field(6, "created_by", Text),
    field(7, "column_orders", List(&Struct(&COLUMN_ORDER))),
    field(8, "encryption_algorithm", Struct(&ENCRYPTION_ALGORITHM)),
    field(9, "footer_signing_key_metadata", Binary),
]);
static SCHEMA_ELEMENT: StructDef = named("SchemaElement").fields(&[
    field(1, "type", Enum(PhysicalType::name_of)),
    field(2, "type_length", I32),
    field(3, "repetition_type", Enum(Repetition::name_of)),
    field(4, "name", Text),
    field(5, "num_children", I32),
    field(6, "converted_type", Enum(ConvertedType::name_of)),
    field(7, "scale", I32),
    field(8, "precision", I32),
    field(9, "field_id", I32),
    field(10, "logicalType", Struct(&LOGICAL_TYPE)),
]);
static LOGICAL_TYPE: StructDef = named("LogicalType").fields(&[
    field(1, "STRING", Struct(&StructDef { name: "StringType", fields: &[] })),
    field(2, "MAP", Struct(&StructDef { name: "MapType", fields: &[] })),
    field(3, "LIST", Struct(&StructDef { name: "ListType", fields: &[] })),
    field(4, "ENUM", Struct(&StructDef { name: "EnumType", fields: &[] })),
    field(5, "DECIMAL", Struct(&DECIMAL_TYPE)),
    field(6, "DATE", Struct(&StructDef { name: "DateType", fields: &[] })),
    field(7, "TIME", Struct(&TIME_TYPE)),
    field(8, "TIMESTAMP", Struct(&TIMESTAMP_TYPE)),
    field(10, "INTEGER", Struct(&INT_TYPE)),
    field(11, "UNKNOWN", Struct(&StructDef { name: "NullType", fields: &[] })),
    field(12, "JSON", Struct(&StructDef { name: "JsonType", fields: &[] })),
    field(13, "BSON", Struct(&StructDef { name: "BsonType", fields: &[] })),
    field(14, "UUID", Struct(&StructDef { name: "UUIDType", fields: &[] })),
    field(15, "FLOAT16", Struct(&StructDef { name: "Float16Type", fields: &[] })),
    field(16, "VARIANT", Struct(&VARIANT_TYPE)),
    field(17, "GEOMETRY", Struct(&GEOMETRY_TYPE)),
    field(18, "GEOGRAPHY", Struct(&GEOGRAPHY_TYPE)),
    field(19, "FILE", Struct(&StructDef { name: "FileType", fields: &[] })),
]);
static DECIMAL_TYPE: StructDef =
    named("DecimalType").fields(&[field(1, "scale", I32), field(2, "precision", I32)]);
static TIME_TYPE: StructDef =
    named("TimeType").fields(&[field(1, "isAdjustedToUTC", Bool), field(2, "unit", Struct(&TIME_UNIT))]);
static TIME_UNIT: StructDef = named("TimeUnit").fields(&[
    field(1, "MILLIS", Struct(&StructDef { name: "MilliSeconds", fields: &[] })),
    field(2, "MICROS", Struct(&StructDef { name: "MicroSeconds", fields: &[] })),
    field(3, "NANOS", Struct(&StructDef { name: "NanoSeconds", fields: &[] })),
]);
static TIMESTAMP_TYPE: StructDef =
    named("TimestampType").fields(&[field(1, "isAdjustedToUTC", Bool), field(2, "unit", Struct(&TIME_UNIT))]);
static INT_TYPE: StructDef = named("IntType").fields(&[field(1, "bitWidth", I8), field(2, "isSigned", Bool)]);
static VARIANT_TYPE: StructDef = named("VariantType").fields(&[field(1, "specification_version", I8)]);
static GEOMETRY_TYPE: StructDef = named("GeometryType").fields(&[field(1, "crs", Text)]);
static GEOGRAPHY_TYPE: StructDef = named("GeographyType")
    .fields(&[field(1, "crs", Text), field(2, "algorithm", Enum(EdgeInterpolationAlgorithm::name_of))]);
static ROW_GROUP: StructDef = named("RowGroup").fields(&[
    field(1, "columns", List(&Struct(&COLUMN_CHUNK))),
    field(2, "total_byte_size", I64),
    field(3, "num_rows", I64),
    field(4, "sorting_columns", List(&Struct(&SORTING_COLUMN))),
    field(5, "file_offset", I64),
    field(6, "total_compressed_size", I64),
    field(7, "ordinal", I16),
]);
pub(crate) static COLUMN_CHUNK: StructDef = named("ColumnChunk").fields(&[
    field(1, "file_path", Text),
    field(2, "file_offset", I64),
    field(3, "meta_data", Struct(&COLUMN_META_DATA)),
    field(4, "offset_index_offset", I64),
    field(5, "offset_index_length", I32),
    field(6, "column_index_offset", I64),
    field(7, "column_index_length", I32),
    field(8, "crypto_metadata", Struct(&COLUMN_CRYPTO_META_DATA)),
    field(9, "encrypted_column_metadata", Binary),
]);
static COLUMN_META_DATA: StructDef = named("ColumnMetaData").fields(&[
    field(1, "type", Enum(PhysicalType::name_of)),
    field(2, "encodings", List(&Enum(Encoding::name_of))),
    field(3, "path_in_schema", List(&Text)),
    field(4, "codec", Enum(Codec::name_of)),
    field(5, "num_values", I64),
    field(6, "total_uncompressed_size", I64),
    field(7, "total_compressed_size", I64),
    field(8, "key_value_metadata", List(&Struct(&KEY_VALUE))),
    field(9, "data_page_offset", I64),
    field(10, "index_page_offset", I64),
    field(11, "dictionary_page_offset", I64),
    field(12, "statistics", Struct(&STATISTICS)),
    field(13, "encoding_stats", List(&Struct(&PAGE_ENCODING_STATS))),
    field(14, "bloom_filter_offset", I64),
    field(15, "bloom_filter_length", I32),
    field(16, "size_statistics", Struct(&SIZE_STATISTICS)),
    field(17, "geospatial_statistics", Struct(&GEOSPATIAL_STATISTICS)),
]);
static KEY_VALUE: StructDef = named("KeyValue").fields(&[field(1, "key", Text), field(2, "value", Text)]);
static STATISTICS: StructDef = named("Statistics").fields(&[
    field(1, "max", Binary),
    field(2, "min", Binary),
    field(3, "null_count", I64),
    field(4, "distinct_count", I64),
    field(5, "max_value", Binary),
    field(6, "min_value", Binary),
    field(7, "is_max_value_exact", Bool),
    field(8, "is_min_value_exact", Bool),
    field(9, "nan_count", I64),
]);
static PAGE_ENCODING_STATS: StructDef = named("PageEncodingStats").fields(&[
    field(1, "page_type", Enum(PageType::name_of)),
    field(2, "encoding", Enum(Encoding::name_of)),
    field(3, "count", I32),
]);
static SIZE_STATISTICS: StructDef = named("SizeStatistics").fields(&[
    field(1, "unencoded_byte_array_data_bytes", I64),
    field(2, "repetition_level_histogram", List(&I64)),
    field(3, "definition_level_histogram", List(&I64)),
]);
static GEOSPATIAL_STATISTICS: StructDef = named("GeospatialStatistics")
    .fields(&[field(1, "bbox", Struct(&BOUNDING_BOX)), field(2, "geospatial_types", List(&I32))]);
static BOUNDING_BOX: StructDef = named("BoundingBox").fields(&[
    field(1, "xmin", Double),
    field(2, "xmax", Double),
    field(3, "ymin", Double),
    field(4, "ymax", Double),
    field(5, "zmin", Double),
    field(6, "zmax", Double),
    field(7, "mmin", Double),
    field(8, "mmax", Double),
]);
static COLUMN_CRYPTO_META_DATA: StructDef = named("ColumnCryptoMetaData").fields(&[
    field(
        1,
        "ENCRYPTION_WITH_FOOTER_KEY",
        Struct(&StructDef { name: "EncryptionWithFooterKey", fields: &[] }),
    ),
    field(2, "ENCRYPTION_WITH_COLUMN_KEY", Struct(&ENCRYPTION_WITH_COLUMN_KEY)),
]);
static ENCRYPTION_WITH_COLUMN_KEY: StructDef = named("EncryptionWithColumnKey")
    .fields(&[field(1, "path_in_schema", List(&Text)), field(2, "key_metadata", Binary)]);
static SORTING_COLUMN: StructDef = named("SortingColumn").fields(&[
    field(1, "column_idx", I32),
    field(2, "descending", Bool),
    field(3, "nulls_first", Bool),
]);
static COLUMN_ORDER: StructDef = named("ColumnOrder").fields(&[
    field(1, "TYPE_ORDER", Struct(&StructDef { name: "TypeDefinedOrder", fields: &[] })),
    field(2, "IEEE_754_TOTAL_ORDER", Struct(&StructDef { name: "IEEE754TotalOrder", fields: &[] })),
    field(3, "INT96_TIMESTAMP_ORDER", Struct(&StructDef { name: "Int96TimestampOrder", fields: &[] })),
]);
static ENCRYPTION_ALGORITHM: StructDef = named("EncryptionAlgorithm").fields(&[
    field(1, "AES_GCM_V1", Struct(&AES_GCM_V1)),
    field(2, "AES_GCM_CTR_V1", Struct(&AES_GCM_CTR_V1)),
]);
static AES_GCM_V1: StructDef = named("AesGcmV1").fields(&[
    field(1, "aad_prefix", Binary),
    field(2, "aad_file_unique", Binary),
    field(3, "supply_aad_prefix", Bool),
]);
static AES_GCM_CTR_V1: StructDef = named("AesGcmCtrV1").fields(&[
    field(1, "aad_prefix", Binary),
    field(2, "aad_file_unique", Binary),
    field(3, "supply_aad_prefix", Bool),
]);
pub(crate) static COLUMN_INDEX: StructDef = named("ColumnIndex").fields(&[
    field(1, "null_pages", List(&Bool)),
    field(2, "min_values", List(&Binary)),
    field(3, "max_values", List(&Binary)),
    field(4, "boundary_order", Enum(BoundaryOrder::name_of)),
    field(5, "null_counts", List(&I64)),
    field(6, "repetition_level_histograms", List(&I64)),
    field(7, "definition_level_histograms", List(&I64)),
    field(8, "nan_counts", List(&I64)),
]);
pub(crate) static OFFSET_INDEX: StructDef = named("OffsetIndex").fields(&[
    field(1, "page_locations", List(&Struct(&PAGE_LOCATION))),
    field(2, "unencoded_byte_array_data_bytes", List(&I64)),
]);
static PAGE_LOCATION: StructDef = named("PageLocation").fields(&[
    field(1, "offset", I64),
    field(2, "compressed_page_size", I32),
    field(3, "first_row_index", I64),
]);
pub(crate) static FILE_CRYPTO_META_DATA: StructDef = named("FileCryptoMetaData").fields(&[
    field(1, "encryption_algorithm", Struct(&ENCRYPTION_ALGORITHM)),
    field(2, "key_metadata", Binary),
]);
