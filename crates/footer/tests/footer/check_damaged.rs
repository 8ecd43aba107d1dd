//! Real files of other writers, each damaged in one place: the check finds the damage and nothing else.

use std::path::{Path, PathBuf};

use sawmill_footer::{DumpLine, Footer, Options, Root, dump};

use crate::thrift_writer::ThriftWriter;

fn fixture(name: &str) -> Vec<u8> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

const FIXTURES: [&str; 4] =
    ["pyarrow_plain.parquet", "duckdb_plain.parquet", "polars_plain.parquet", "fastparquet_plain.parquet"];

/// What the check finds in a file, including its page indexes.
fn findings(file: &[u8]) -> Vec<String> {
    let footer = Footer::from_file_bytes(file, &Options::new()).unwrap();
    let mut found = Vec::new();
    sawmill_inspect::check_file(&footer, file, |finding| found.push(finding.to_string())).unwrap();
    found
}

fn metadata(file: &[u8]) -> &[u8] {
    let end = file.len() - 8;
    let len = u32::from_le_bytes(*file[end..].first_chunk().unwrap()) as usize;
    &file[end - len..end]
}

/// The file with its footer replaced.
fn with_metadata(file: &[u8], footer: &[u8]) -> Vec<u8> {
    let data = file.len() - 8 - metadata(file).len();
    let mut changed = file[..data].to_vec();
    changed.extend_from_slice(footer);
    changed.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    changed.extend_from_slice(b"PAR1");
    changed
}

/// The offset of the first value that `wanted` accepts among the footer's lines.
fn find(footer: &[u8], mut wanted: impl FnMut(&DumpLine<'_>) -> bool) -> Option<usize> {
    let mut found = None;
    dump(footer, Root::FileMetaData, |line| {
        if found.is_none() && wanted(&line) {
            found = Some(line.offset);
        }
        found.is_none()
    })
    .unwrap();
    found
}

/// The offset of the first value in a field with this name.
fn field(footer: &[u8], name: &str) -> Option<usize> {
    find(footer, |line| line.name == Some(name))
}

/// The first column chunk's bounds that differ and have eight bytes each.
struct Bounds {
    lower: usize,
    upper: usize,
    /// Their names in the format.
    names: [&'static str; 2],
}

fn different_bounds(footer: &[u8]) -> Bounds {
    let decoded = Footer::decode(footer, &Options::new()).unwrap();
    let own = decoded.bytes().as_ptr() as usize;
    let of_orders = decoded.column_orders().is_some();
    decoded
        .row_groups()
        .flat_map(|group| group.columns())
        .find_map(|chunk| {
            let found = chunk.statistics().unwrap()?;
            // If a footer names no orders, only the deprecated bounds have one.
            let (lower, upper, names) = match of_orders {
                true => (found.min_value?, found.max_value?, ["min_value", "max_value"]),
                false => (found.min?, found.max?, ["min", "max"]),
            };
            let place = |bound: &[u8]| bound.as_ptr() as usize - own;
            let usable = lower != upper && lower.len() == 8 && upper.len() == 8;
            usable.then(|| Bounds { lower: place(lower), upper: place(upper), names })
        })
        .expect("a column with bounds of eight bytes")
}

#[test]
fn a_lower_bound_above_the_upper_one_is_found() {
    for name in FIXTURES {
        let file = fixture(name);
        assert_eq!(findings(&file), [""; 0], "{name}");
        let mut footer = metadata(&file).to_vec();
        let Bounds { lower, upper, names: [least, most] } = different_bounds(&footer);
        for at in 0..8 {
            footer.swap(lower + at, upper + at);
        }
        let found = findings(&with_metadata(&file, &footer));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        let what = format!("expected the {least} to be no greater than the {most} in the column's order");
        assert!(found[0].contains(&what), "{name}: {found:?}");
        assert!(found[0].contains("meta_data.statistics, byte "), "{name}: {found:?}");
    }
}

#[test]
fn a_bound_whose_length_does_not_fit_the_type_is_found() {
    for name in FIXTURES {
        let file = fixture(name);
        let mut footer = metadata(&file).to_vec();
        let Bounds { lower, names: [least, _], .. } = different_bounds(&footer);
        // The byte before the bound holds its length.
        assert_eq!(footer[lower - 1], 8);
        footer[lower - 1] -= 1;
        footer.remove(lower);
        let found = findings(&with_metadata(&file, &footer));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(found[0].contains("expected a bound of 8 bytes for the type, found one of 7"), "{found:?}");
        assert!(found[0].contains(&format!("statistics.{least}, byte ")), "{name}: {found:?}");
    }
}

#[test]
fn repetitions_and_converted_types_unknown_to_the_format_are_found() {
    for name in FIXTURES {
        let file = fixture(name);
        let mut footer = metadata(&file).to_vec();
        // 9, as a signed varint. Must be a leaf: decoding needs the other repetitions.
        let at = find(&footer, {
            let mut leaf = false;
            move |line| {
                leaf |= line.name == Some("type");
                leaf && line.name == Some("repetition_type")
            }
        });
        footer[at.unwrap()] = 18;
        let found = match Footer::from_file_bytes(&with_metadata(&file, &footer), &Options::new()) {
            Ok(_) => findings(&with_metadata(&file, &footer)),
            Err(error) => vec![error.to_string()],
        };
        assert!(
            found.iter().any(|one| one.contains("unknown (9)") && one.contains("repetition_type")),
            "{name}: {found:?}"
        );

        let mut footer = metadata(&file).to_vec();
        let at = field(&footer, "converted_type").unwrap();
        // 30, as a signed varint.
        footer[at] = 60;
        let found = findings(&with_metadata(&file, &footer));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(
            found[0].contains("expected a converted type of the format") && found[0].contains("unknown (30)"),
            "{found:?}"
        );
        assert!(found[0].contains("].converted_type"), "{found:?}");
    }
}

#[test]
fn row_groups_that_are_listed_twice_are_found() {
    for name in FIXTURES {
        let file = fixture(name);
        let footer = metadata(&file);
        let list = field(footer, "row_groups").unwrap();
        let decoded = Footer::decode(footer, &Options::new()).unwrap();
        let group = decoded.row_group(0).unwrap().footer_offset();
        // What follows the list: the next field's one-byte header.
        let end = find(footer, |line| line.depth == 0 && line.offset > list).unwrap() - 1;
        let next = find(footer, |line| {
            line.depth == 1 && line.index == Some(1) && line.offset > list && line.offset < end
        });

        // One row group twice in the list, whose length is in the upper half of its first byte.
        assert!(footer[list] >> 4 < 14, "{name}");
        let mut twice = footer.to_vec();
        twice[list] += 0x10;
        let own = footer[group..next.unwrap_or(end)].to_vec();
        twice.splice(group..group, own);
        let found = findings(&with_metadata(&file, &twice));
        assert!(found.iter().any(|one| one.contains("apart from all else")), "{name}: {found:?}");
        assert!(found.iter().any(|one| one.contains("num_rows")), "{name}: {found:?}");

        // The whole list twice, with an explicit field id because the id does not increase.
        let mut twice = footer.to_vec();
        let again: Vec<u8> = [0x09, 0x08].iter().chain(&footer[list..end]).copied().collect();
        twice.splice(end..end, again);
        let found = findings(&with_metadata(&file, &twice));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(found[0].contains("expected the field `row_groups` once, found it again"), "{found:?}");
        assert!(found[0].contains("row_groups, byte "), "{found:?}");
    }
}

/// Repeats each field of the footer in turn at the end of its struct. The check finds the repetition at its
/// offset, in any struct.
#[test]
fn a_repeated_field_in_any_struct_is_found() {
    for name in FIXTURES {
        let file = fixture(name);
        let footer = metadata(&file);
        let (mut lines, mut structs) = (Vec::new(), std::collections::BTreeSet::new());
        dump(footer, Root::FileMetaData, |line| {
            lines.push((line.offset, line.depth, line.id, line.name, line.wire));
            true
        })
        .unwrap();
        let mut checked = 0;
        for (place, (start, depth, id, field, wire)) in lines.iter().enumerate() {
            // A value without nested values that ends its struct: the next value is less deep.
            let inside = lines.get(place + 1).is_some_and(|next| next.1 > *depth);
            let last = lines.get(place + 1).is_some_and(|next| next.1 < *depth);
            let (Some(id), false, true) = (id, inside || *wire == "bool", last) else { continue };
            // The struct's stop follows the value, whose length its wire type determines.
            let end = end_of(&footer[*start..], wire) + start;
            assert_eq!(footer[end], 0, "{name}: a struct ends after {field:?} at {start}");
            let number = match *wire {
                "i16" => 4,
                "i32" => 5,
                "i64" => 6,
                "binary" => 8,
                _ => continue,
            };
            let mut twice = footer.to_vec();
            let again: Vec<u8> =
                [number, (id << 1) as u8].iter().chain(&footer[*start..end]).copied().collect();
            twice.splice(end..end, again);
            // Decoding rejects some repetitions; those need no finding.
            let Ok(decoded) = Footer::from_file_bytes(&with_metadata(&file, &twice), &Options::new()) else {
                continue;
            };
            let mut found = Vec::new();
            sawmill_inspect::check(&decoded, |finding| found.push(finding.to_string()));
            let field = field.unwrap();
            let expected = format!("expected the field `{field}` once, found it again - ");
            let again: Vec<&String> = found.iter().filter(|one| one.starts_with(&expected)).collect();
            assert_eq!(again.len(), 1, "{name}, {field} at {start}: {found:?}");
            assert!(again[0].contains(&format!("{field}, byte {} of", end + 2)), "{}", again[0]);
            structs.insert(field);
            checked += 1;
        }
        assert!(checked > 10 && structs.len() > 3, "{name}: {checked} in {structs:?}");
    }
}

/// The length of the value of this wire type at the start of the bytes.
fn end_of(bytes: &[u8], wire: &str) -> usize {
    let varint = 1 + bytes.iter().position(|byte| *byte < 0x80).unwrap();
    match wire {
        "binary" => {
            let length =
                bytes[..varint].iter().rev().fold(0, |all, byte| all << 7 | usize::from(byte & 0x7f));
            varint + length
        }
        _ => varint,
    }
}

#[test]
fn a_repeated_field_in_a_page_index_is_found() {
    let file = fixture("polars_plain.parquet");
    let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
    let chunk = footer.row_group(0).unwrap().column(0).unwrap();
    let (offsets, at) = (chunk.offset_index_range().unwrap().unwrap(), chunk.footer_offset());
    let index = &file[offsets.start as usize..offsets.end as usize];
    // Put an index that repeats its list of pages before the footer.
    let list = &index[1..index.len() - 1];
    let twice: Vec<u8> = [&index[..index.len() - 1], &[0x09, 0x02], list, &[0]].concat();
    let place = find(metadata(&file), |line| line.name == Some("offset_index_offset") && line.offset > at);
    let length = find(metadata(&file), |line| line.name == Some("offset_index_length") && line.offset > at);
    let mut changed = metadata(&file).to_vec();
    let data = file.len() - 8 - metadata(&file).len();
    let varint = |value: usize| {
        let mut writer = ThriftWriter::new();
        writer.integer(value as i64);
        writer.into_bytes()
    };
    // Change the later value first, so that the earlier one keeps its offset.
    for (at, value) in [(length.unwrap(), twice.len()), (place.unwrap(), data)] {
        let end = at + end_of(&changed[at..], "i64");
        changed.splice(at..end, varint(value));
    }
    let mut whole = file[..data].to_vec();
    whole.extend_from_slice(&twice);
    whole.extend_from_slice(&changed);
    whole.extend_from_slice(&(changed.len() as u32).to_le_bytes());
    whole.extend_from_slice(b"PAR1");
    let found = findings(&whole);
    let again = found.iter().filter(|one| one.contains("expected the field `page_locations` once")).count();
    assert_eq!(again, 1, "{found:?}");
    assert!(found.iter().any(|one| one.contains("row_groups[0].columns[0], offset index, page_locations")));
}

#[test]
fn bounds_of_pages_are_checked_too() {
    let file = fixture("polars_plain.parquet");
    let footer = Footer::from_file_bytes(&file, &Options::new()).unwrap();
    let (at, range) = footer
        .row_groups()
        .flat_map(|group| group.columns())
        .find_map(|chunk| {
            let index = chunk.read_column_index(file.as_slice()).unwrap()?;
            let (lower, upper) = (index.min_value(0)?, index.max_value(0)?);
            let range = chunk.column_index_range().unwrap()?;
            let bytes = &file[range.start as usize..range.end as usize];
            let place = |bound: &[u8]| bytes.windows(8).position(|window| window == bound);
            (lower.len() == 8 && lower != upper)
                .then(|| ((place(lower).unwrap(), place(upper).unwrap()), range))
        })
        .expect("a column index of eight-byte bounds");
    let mut damaged = file.clone();
    for byte in 0..8 {
        damaged.swap(range.start as usize + at.0 + byte, range.start as usize + at.1 + byte);
    }
    let found = findings(&damaged);
    assert!(
        found.iter().any(|one| one.contains("min_value of page 0") && one.contains("column index")),
        "{found:?}"
    );
}
