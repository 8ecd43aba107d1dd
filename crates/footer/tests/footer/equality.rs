//! Decoded footers equal the `parquet` crate's metadata in every field.

use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader};
use parquet::schema::types::Type;
use sawmill_footer::{ColumnOrder, Element, Footer, Options};

use crate::samples;

/// The `parquet` crate's result for the metadata bytes of a footer.
pub fn by_parquet(bytes: &[u8]) -> parquet::errors::Result<ParquetMetaData> {
    let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
    ParquetMetaDataReader::decode_metadata_with_options(bytes, Some(&options))
}

/// Asserts that all fields are equal.
pub fn assert_equal(ours: &Footer, theirs: &ParquetMetaData) {
    let file = theirs.file_metadata();
    assert_eq!(ours.version(), file.version());
    assert_eq!(ours.num_rows(), file.num_rows());
    assert_eq!(ours.created_by().as_deref(), file.created_by());
    // The first versions of this writer leave the header of a dictionary page out of a chunk's size.
    let uncounted = if file.created_by() == Some("parquet-mr") { 100 } else { 0 };
    let pairs: Vec<_> = ours.key_value_metadata().collect();
    let their_pairs = file.key_value_metadata();
    assert_eq!(ours.has_key_value_metadata(), their_pairs.is_some());
    let their_pairs = their_pairs.into_iter().flatten();
    assert_eq!(
        pairs,
        their_pairs
            .map(|pair| (pair.key.as_str().into(), pair.value.as_deref().map(Into::into)))
            .collect::<Vec<_>>()
    );
    let orders = file.column_orders().map(|orders| orders.len());
    assert_eq!(ours.column_orders().map(<[_]>::len), orders);
    for (ours, theirs) in
        ours.column_orders().into_iter().flatten().zip(file.column_orders().into_iter().flatten())
    {
        use parquet::basic::ColumnOrder as Theirs;
        match theirs {
            Theirs::TYPE_DEFINED_ORDER(_) | Theirs::UNDEFINED => assert_eq!(*ours, ColumnOrder::TypeOrder),
            // Orders newer than the crate's version.
            Theirs::UNKNOWN => assert_ne!(*ours, ColumnOrder::TypeOrder),
            #[allow(unreachable_patterns, reason = "which orders there are depends on the crate's version")]
            _ => assert_eq!(*ours, ColumnOrder::Ieee754TotalOrder),
        }
    }
    assert_schema(ours.schema().root(), file.schema());
    let descr = file.schema_descr();
    assert_eq!(ours.schema().num_leaves(), descr.num_columns());
    for (leaf, column) in ours.schema().leaves().zip(descr.columns()) {
        assert_eq!(leaf.path(), column.path().string());
        assert_eq!(leaf.max_def(), column.max_def_level() as u32);
        assert_eq!(leaf.max_rep(), column.max_rep_level() as u32);
    }
    assert_eq!(ours.num_row_groups(), theirs.num_row_groups());
    for (group, their_group) in ours.row_groups().zip(theirs.row_groups()) {
        assert_eq!(group.num_rows(), their_group.num_rows());
        assert_eq!(group.total_byte_size(), their_group.total_byte_size());
        assert_eq!(group.file_offset(), their_group.file_offset());
        // The crate assigns numbers to row groups without one.
        assert_eq!(group.ordinal().or(Some(group.index() as i16)), their_group.ordinal());
        let sorting = |of: &[parquet::file::metadata::SortingColumn]| -> Vec<_> {
            of.iter().map(|by| (by.column_idx, by.descending, by.nulls_first)).collect()
        };
        let our_sorting = group.sorting_columns().map(|columns| {
            columns.iter().map(|by| (by.column_idx, by.descending, by.nulls_first)).collect::<Vec<_>>()
        });
        assert_eq!(our_sorting, their_group.sorting_columns().map(|columns| sorting(columns)));
        assert_eq!(group.num_columns(), their_group.num_columns());
        assert_eq!(
            group.columns().map(|chunk| chunk.compressed_size()).sum::<i64>(),
            their_group.compressed_size()
        );
        for (chunk, their_chunk) in group.columns().zip(their_group.columns()) {
            assert_chunk(&chunk, their_chunk, uncounted);
        }
    }
}

/// `uncounted` is the most that the size of a chunk may leave out.
fn assert_chunk(
    ours: &sawmill_footer::ColumnChunk<'_>,
    theirs: &parquet::file::metadata::ColumnChunkMetaData,
    uncounted: u64,
) {
    let details = ours.details().unwrap();
    assert_eq!(ours.path(), theirs.column_path().string());
    assert_eq!(details.path_in_schema.as_deref().map(|names| names.join(".")), Some(ours.path()));
    assert_eq!(ours.physical_type().number(), theirs.column_type() as i32);
    assert_eq!(ours.codec().number(), theirs.compression_codec() as i32);
    assert_eq!(
        ours.encodings().iter().map(|encoding| encoding.number()).collect::<Vec<_>>(),
        theirs.encodings().map(|encoding| encoding as i32).collect::<Vec<_>>()
    );
    let mut listed: Vec<i32> = details.encodings.iter().map(|encoding| encoding.number()).collect();
    listed.sort_unstable();
    listed.dedup();
    assert_eq!(listed, theirs.encodings().map(|encoding| encoding as i32).collect::<Vec<_>>());
    assert_eq!(ours.num_values(), theirs.num_values());
    assert_eq!(ours.compressed_size(), theirs.compressed_size());
    assert_eq!(ours.uncompressed_size(), theirs.uncompressed_size());
    assert_eq!(ours.data_page_offset(), theirs.data_page_offset());
    assert_eq!(ours.dictionary_page_offset(), theirs.dictionary_page_offset());
    let (start, len) = theirs.byte_range();
    let range = ours.byte_range();
    assert_eq!(range.start, start);
    assert!((0..=uncounted).contains(&(range.end - start - len)), "{range:?}, not {start}..{}", start + len);
    assert_eq!(details.file_path, theirs.file_path());
    assert_eq!(details.file_offset, theirs.file_offset());
    assert_eq!(details.index_page_offset, theirs.index_page_offset());
    assert_eq!(details.bloom_filter_offset, theirs.bloom_filter_offset());
    assert_eq!(details.bloom_filter_length, theirs.bloom_filter_length());
    assert_eq!(details.offset_index_offset, theirs.offset_index_offset());
    assert_eq!(details.offset_index_length, theirs.offset_index_length());
    assert_eq!(details.column_index_offset, theirs.column_index_offset());
    assert_eq!(details.column_index_length, theirs.column_index_length());
    let sizes = details.size_statistics.clone().unwrap_or_default();
    assert_eq!(sizes.unencoded_byte_array_data_bytes, theirs.unencoded_byte_array_data_bytes());
    let histogram = |of: Option<&parquet::file::metadata::LevelHistogram>| of.map(|of| of.values().to_vec());
    assert_eq!(sizes.repetition_level_histogram, histogram(theirs.repetition_level_histogram()));
    assert_eq!(sizes.definition_level_histogram, histogram(theirs.definition_level_histogram()));
    assert_eq!(ours.size_statistics().unwrap(), details.size_statistics);
    assert_eq!(
        details.encoding_stats.as_ref().map(|all| all
            .iter()
            .map(|one| (one.page_type.number(), one.encoding.number(), one.count))
            .collect::<Vec<_>>()),
        theirs.page_encoding_stats().map(|all| all
            .iter()
            .map(|one| (one.page_type as i32, one.encoding as i32, one.count))
            .collect::<Vec<_>>())
    );
    assert_eq!(ours.statistics().unwrap(), details.statistics);
    assert_eq!(details.statistics.is_some(), theirs.statistics().is_some());
    if let (Some(ours), Some(theirs)) = (details.statistics, theirs.statistics()) {
        let (min, max) = if theirs.is_min_max_deprecated() {
            (ours.min, ours.max)
        } else {
            (ours.min_value, ours.max_value)
        };
        assert_eq!(min, theirs.min_bytes_opt());
        assert_eq!(max, theirs.max_bytes_opt());
        assert_eq!(ours.null_count.map(|count| count as u64), theirs.null_count_opt());
        assert_eq!(ours.distinct_count.map(|count| count as u64), theirs.distinct_count_opt());
        // If the file does not state it, the crate considers fixed-width bounds exact.
        let fixed = !matches!(theirs.physical_type() as i32, 6 | 7);
        let exact = |stated: Option<bool>, bound: Option<&[u8]>| match fixed {
            true => bound.is_some(),
            false => stated.unwrap_or(false),
        };
        assert_eq!(exact(ours.is_min_value_exact, min), theirs.min_is_exact());
        assert_eq!(exact(ours.is_max_value_exact, max), theirs.max_is_exact());
    }
}

fn assert_schema(ours: Element<'_>, theirs: &Type) {
    assert_eq!(ours.name(), theirs.name());
    let info = theirs.get_basic_info();
    if ours.index() > 0 {
        assert_eq!(ours.repetition().map(|repetition| repetition.number()), Some(info.repetition() as i32));
    }
    assert_eq!(ours.field_id(), info.has_id().then(|| info.id()));
    let converted = ours.converted_type().map(|converted| converted.to_string());
    // If the file has only a logical type, the crate derives the matching converted type.
    if converted.is_some() || ours.logical_type().is_none() {
        assert_eq!(converted.unwrap_or("NONE".to_string()), info.converted_type().to_string());
    }
    assert_logical(ours.logical_type(), info.logical_type_ref());
    match theirs {
        Type::PrimitiveType { physical_type, type_length, scale, precision, .. } => {
            assert!(ours.is_leaf());
            assert_eq!(ours.physical_type().map(|of| of.number()), Some(*physical_type as i32));
            assert_eq!(ours.type_length().unwrap_or(-1), *type_length);
            assert_eq!(ours.scale().unwrap_or(-1), *scale);
            assert_eq!(ours.precision().unwrap_or(-1), *precision);
        }
        Type::GroupType { fields, .. } => {
            assert!(!ours.is_leaf());
            assert_eq!(ours.children().count(), fields.len());
            for (child, their_child) in ours.children().zip(fields) {
                assert_eq!(child.parent().unwrap().index(), ours.index());
                assert_schema(child, their_child);
            }
        }
    }
}

fn assert_logical(ours: Option<&sawmill_footer::LogicalType>, theirs: Option<&parquet::basic::LogicalType>) {
    use parquet::basic::LogicalType as Theirs;
    use parquet::basic::TimeUnit as TheirUnit;
    use sawmill_footer::LogicalType as Ours;
    use sawmill_footer::TimeUnit as Unit;
    let unit = |of: &TheirUnit| match of {
        TheirUnit::MILLIS => Unit::Millis,
        TheirUnit::MICROS => Unit::Micros,
        TheirUnit::NANOS => Unit::Nanos,
    };
    let expected = theirs.map(|theirs| match theirs {
        Theirs::String => Ours::String,
        Theirs::Map => Ours::Map,
        Theirs::List => Ours::List,
        Theirs::Enum => Ours::Enum,
        Theirs::Decimal(of) => Ours::Decimal { scale: of.scale, precision: of.precision },
        Theirs::Date => Ours::Date,
        Theirs::Time(of) => Ours::Time { is_adjusted_to_utc: of.is_adjusted_to_u_t_c, unit: unit(&of.unit) },
        Theirs::Timestamp(of) => {
            Ours::Timestamp { is_adjusted_to_utc: of.is_adjusted_to_u_t_c, unit: unit(&of.unit) }
        }
        Theirs::Integer(of) => Ours::Integer { bit_width: of.bit_width, is_signed: of.is_signed },
        Theirs::Unknown => Ours::Null,
        Theirs::Json => Ours::Json,
        Theirs::Bson => Ours::Bson,
        Theirs::Uuid => Ours::Uuid,
        Theirs::Float16 => Ours::Float16,
        Theirs::Variant(of) => Ours::Variant { specification_version: of.specification_version },
        Theirs::Geometry(of) => Ours::Geometry { crs: of.crs.as_deref().map(Into::into) },
        Theirs::Geography(of) => Ours::Geography {
            crs: of.crs.as_deref().map(Into::into),
            algorithm: of.algorithm.as_ref().map(|_| sawmill_footer::EdgeInterpolationAlgorithm::Spherical),
        },
        Theirs::_Unknown { field_id } => match field_id {
            19 => Ours::File,
            id => Ours::Unknown { id: *id },
        },
    });
    assert_eq!(ours, expected.as_ref());
}

#[test]
fn every_field_equals_the_parquet_crates() {
    for (name, file) in samples::all() {
        println!("{name}");
        let bytes = samples::metadata(&file);
        let footer = Footer::decode(bytes, &Options::new()).unwrap();
        assert_equal(&footer, &by_parquet(bytes).unwrap());
        let checked = Footer::decode(bytes, &Options::new().verify(sawmill_footer::Verify::Values)).unwrap();
        assert_equal(&checked, &by_parquet(bytes).unwrap());
        let whole = Footer::from_file_bytes(&file, &Options::new()).unwrap();
        assert_equal(&whole, &by_parquet(bytes).unwrap());
        assert_eq!(whole.footer_len(), bytes.len());
    }
}
