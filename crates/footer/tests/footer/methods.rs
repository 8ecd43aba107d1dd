//! All methods agree on everything: what they accept, what they reject and where, what they decode.

use proptest::prelude::*;
use sawmill_footer::{Footer, Method, Options};

use crate::equality::{assert_equal, by_parquet};
use crate::everything::everything;
use crate::handmade;
use crate::samples;
use crate::synthetic::{SyntheticColumns, SyntheticFooter};
use crate::thrift_writer::ThriftWriter;

/// The methods compared with the scalar one.
pub const OTHERS: [Method; 3] = [Method::Fastest, Method::Portable, Method::Avx2];

pub fn assert_agreement(bytes: &[u8], options: &Options) {
    let scalar = everything(&Footer::decode(bytes, &options.clone().method(Method::Scalar)));
    for method in OTHERS {
        let other = everything(&Footer::decode(bytes, &options.clone().method(method)));
        if scalar != other {
            let at =
                scalar.bytes().zip(other.bytes()).position(|(a, b)| a != b).unwrap_or(0).saturating_sub(100);
            panic!(
                "{method:?} differs from the scalar walk\n{}\n{}",
                &String::from_utf8_lossy(&scalar.as_bytes()[at..scalar.len().min(at + 400)]),
                &String::from_utf8_lossy(&other.as_bytes()[at..other.len().min(at + 400)])
            );
        }
    }
}

/// Options that take different paths through the decoder.
fn selections(columns: usize) -> Vec<Options> {
    vec![
        Options::new(),
        Options::new().columns([columns / 2]),
        Options::new().columns([0, columns / 3, columns - 1]),
        Options::new().row_groups(0..1),
        Options::new().row_groups(3..8).columns([columns - 1]),
        Options::new().row_groups_where(|rows| rows > 0),
        Options::new().row_groups_in_bytes(100_000..1_000_000),
        Options::new().verify(sawmill_footer::Verify::Values),
    ]
}

#[test]
fn methods_agree_on_files_of_the_parquet_crate() {
    for (_, file) in samples::all() {
        let bytes = samples::metadata(&file);
        for options in [Options::new(), Options::new().columns([1]), Options::new().row_groups(1..3)] {
            assert_agreement(bytes, &options);
        }
    }
}

#[test]
fn methods_agree_on_synthetic_footers_and_with_the_parquet_crate() {
    for kind in [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed] {
        for (columns, row_groups) in [(1, 3), (14, 20), (15, 20), (60, 41), (300, 9), (2000, 6)] {
            let bytes = SyntheticFooter { columns, row_groups, kind, seed: 7 }.bytes();
            for options in selections(columns) {
                assert_agreement(&bytes, &options);
            }
            assert_equal(
                &Footer::decode(bytes.as_slice(), &Options::new()).unwrap(),
                &by_parquet(&bytes).unwrap(),
            );
        }
    }
}

/// Row groups of many columns; `odd` changes some of their chunks.
fn many(row_groups: usize, columns: usize, mut odd: impl FnMut(&mut ThriftWriter, usize)) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, columns);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, row_groups as u64);
    let mut count = 0;
    for _ in 0..row_groups {
        handmade::row_group(&mut writer, columns, |writer, _| {
            handmade::chunk(writer, |writer| {
                odd(writer, count);
                count += 1;
            });
        });
    }
    writer.binary(6, b"by hand");
    writer.stop();
    writer.into_bytes()
}

/// A chunk of one of many kinds: type, codec, encodings, dictionary, nulls, and which statistics there are
/// all follow from `kind`, sizes and bounds from `seed`.
fn chunk_of_kind(writer: &mut ThriftWriter, kind: u64, seed: u64) {
    let (physical_type, codec, rest) = (kind % 8, kind / 8 % 4, kind / 32);
    let size = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (20 + seed % 40);
    let size = size as i64;
    writer.begin_element();
    writer.i64(2, if rest & 1 == 0 { 0 } else { size });
    writer.begin(3);
    writer.i32(1, physical_type as i32);
    writer.list(2, handmade::I32, 1 + rest % 3);
    [0, 3, 8].into_iter().take(1 + rest as usize % 3).for_each(|encoding| writer.integer(encoding));
    writer.list(3, handmade::BINARY, 1);
    writer.bytes_value("a name".repeat(1 + (rest % 5) as usize * 6).as_bytes());
    writer.i32(4, codec as i32);
    [5, 6, 7].into_iter().for_each(|field| writer.i64(field, size / i64::from(field)));
    if rest & 2 != 0 {
        writer.list(8, 12, 0);
    }
    writer.i64(9, size + 1000);
    if rest & 4 != 0 {
        writer.i64(11, size);
    }
    if rest & 8 == 0 {
        writer.begin(12);
        let lens = [1, 4, 8, 12, 4, 8, seed as usize % 200, 1 + rest as usize % 20];
        let len = lens[physical_type as usize];
        if rest & 16 != 0 {
            writer.i64(3, seed as i64 % 300);
        }
        writer.binary(5, &vec![seed as u8; len]);
        writer.binary(6, &vec![!seed as u8; len]);
        writer.stop();
    }
    writer.list(13, handmade::STRUCT, 1 + rest % 2);
    for page in 0..1 + rest % 2 {
        writer.begin_element();
        writer.i32(1, if page == 0 { 2 } else { 0 });
        writer.i32(2, if rest & 64 == 0 { 0 } else { 8 });
        writer.i32(3, if page == 0 { 1 } else { seed as i32 & 0x3ff });
        writer.stop();
    }
    writer.stop();
    if rest & 32 != 0 {
        writer.i64(4, size * 2);
        writer.i32(5, 77);
    }
    writer.stop();
}

/// Row groups of chunks of many kinds: a column's are mostly of one, and of `kinds` in all.
fn of_many_kinds(row_groups: usize, columns: usize, kinds: u64, seed: u64) -> Vec<u8> {
    let mut writer = ThriftWriter::new();
    writer.i32(1, 1);
    handmade::schema(&mut writer, columns);
    writer.i64(3, 10);
    writer.list(4, handmade::STRUCT, row_groups as u64);
    for group in 0..row_groups as u64 {
        handmade::row_group(&mut writer, columns, |writer, column| {
            let place = (group * 7919 + column as u64).wrapping_mul(seed | 1);
            let odd = if place.is_multiple_of(5) { place } else { 0 };
            chunk_of_kind(writer, (column as u64 * 37 + odd) % kinds, place);
        });
    }
    writer.stop();
    writer.into_bytes()
}

#[test]
fn methods_agree_on_more_kinds_of_chunks_than_columns() {
    for (row_groups, columns, kinds) in [(1, 20, 1000), (5, 50, 300), (90, 40, 2000), (12, 700, 1 << 20)] {
        let bytes = of_many_kinds(row_groups, columns, kinds, 3);
        for options in selections(columns) {
            assert_agreement(&bytes, &options);
        }
        assert!(Footer::decode(bytes.as_slice(), &Options::new()).is_ok());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn methods_agree_on_footers_of_any_mixture_of_kinds(
        row_groups in 1usize..30, columns in 1usize..60, kinds in 1u64..5000, seed in any::<u64>(),
        place in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut bytes = of_many_kinds(row_groups, columns, kinds, seed);
        assert_agreement(&bytes, &Options::new());
        let at = place.index(bytes.len());
        bytes[at] = byte;
        assert_agreement(&bytes, &Options::new());
        assert_agreement(&bytes, &Options::new().columns([columns / 2]));
    }
}

#[test]
fn methods_agree_on_odd_chunks_among_even_ones() {
    type Odd = fn(&mut ThriftWriter);
    let odd: [(&str, Odd); 12] = [
        ("wide", |writer| writer.i64(5, 1 << 40)),
        ("negative size", |writer| writer.i64(6, -1)),
        ("negative offset", |writer| writer.i64(9, -1)),
        ("largest offset", |writer| writer.i64(9, i64::MAX)),
        ("dictionary after data", |writer| writer.i64(11, 1000)),
        ("negative dictionary", |writer| writer.i64(11, -1000)),
        ("varint of 9 bytes", |writer| {
            writer.field(10, 6);
            writer.raw(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]);
        }),
        ("varint of 11 bytes", |writer| {
            writer.field(10, 6);
            writer.raw(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]);
        }),
        ("varint of 10 bytes in a wanted value", |writer| {
            writer.field(5, 6);
            writer.raw(&[0x84, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]);
        }),
        ("padded varint", |writer| {
            writer.field(11, 6);
            writer.raw(&[0x84, 0x80, 0x80, 0x00]);
        }),
        ("long binary", |writer| writer.list(8, 12, 0)),
        ("unknown wire type", |writer| writer.field(20, 14)),
    ];
    for (name, odd) in odd {
        for at in [0, 5, 33, 150, 177] {
            println!("{name} at {at}");
            let bytes = many(9, 20, |writer, count| {
                if count == at || count == at + 40 {
                    odd(writer);
                }
            });
            for options in selections(20) {
                assert_agreement(&bytes, &options);
            }
        }
    }
}

/// A number of more than eight bytes is the only difference to the chunks walked in lockstep with its own.
#[test]
fn long_varints_in_any_of_several_row_groups_are_noticed() {
    let ten: [&[u8]; 3] = [
        &[0x14],
        &[0x94, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
        &[0x94, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00],
    ];
    let columns = 90;
    for (row_groups, long) in [5, 10].into_iter().flat_map(|groups| [(groups, ten[1]), (groups, ten[2])]) {
        for odd in 0..row_groups {
            let mut writer = ThriftWriter::new();
            writer.i32(1, 1);
            handmade::schema(&mut writer, columns);
            writer.i64(3, 10);
            writer.list(4, handmade::STRUCT, row_groups as u64);
            for group in 0..row_groups {
                handmade::row_group(&mut writer, columns, |writer, column| {
                    writer.begin_element();
                    writer.i64(2, 0);
                    writer.begin(3);
                    writer.i32(1, 2);
                    writer.list(2, handmade::I32, 1);
                    writer.integer(0);
                    writer.list(3, handmade::BINARY, 1);
                    writer.bytes_value(b"c");
                    writer.i32(4, 6);
                    writer.field(5, 6);
                    writer.raw(if group == odd && column % 40 == 30 { long } else { ten[0] });
                    [(6, 200), (7, 100), (9, 4)].into_iter().for_each(|(id, value)| writer.i64(id, value));
                    writer.stop();
                    writer.stop();
                });
            }
            writer.stop();
            let bytes = writer.into_bytes();
            for method in OTHERS {
                let footer = Footer::decode(bytes.as_slice(), &Options::new().method(method)).unwrap();
                let mut chunks = footer.row_groups().flat_map(|group| group.columns());
                assert!(chunks.all(|chunk| chunk.num_values() == 10), "{method:?}: {odd} of {row_groups}");
            }
            assert_agreement(&bytes, &Options::new());
        }
    }
}

#[test]
fn names_of_all_lengths_and_of_any_bytes_are_skipped_alike() {
    // A one-byte length after a name that ends in a byte with its top bit set looks like the end of a longer
    // varint.
    for len in [0, 1, 2, 60, 126, 127, 128, 129, 300, 16_383, 16_384] {
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        handmade::schema(&mut writer, 20);
        writer.i64(3, 10);
        writer.list(4, handmade::STRUCT, 8);
        for group in 0..8 {
            handmade::row_group(&mut writer, 20, |writer, column| {
                handmade::chunk(writer, |writer| {
                    writer.list(3, handmade::BINARY, 3);
                    for part in 0..3 {
                        let len = if (group + column) % 3 == part { len } else { 5 };
                        writer.bytes_value("\u{e4}".repeat(len).as_bytes());
                    }
                });
            });
        }
        writer.stop();
        let bytes = writer.into_bytes();
        assert!(Footer::decode(bytes.as_slice(), &Options::new()).is_ok());
        assert_agreement(&bytes, &Options::new());
        let mut writer = ThriftWriter::new();
        writer.raw(&bytes);
    }
}

#[test]
fn the_opening_of_a_row_group_within_a_bound_is_harmless() {
    // The opening bytes of a row group, as a value in a chunk.
    let opening = [0, 0x19, 0xfc, 20, 0x26, 0x00, 0x1c, 0x15, 0x04];
    let bytes = many(30, 20, |writer, count| {
        writer.begin(12);
        let filler = vec![7; (count * 37) % 90];
        writer.binary(5, &[&opening[..], &filler, &opening[..]].concat());
        writer.stop();
    });
    for options in selections(20) {
        assert_agreement(&bytes, &options);
    }
}

#[test]
fn methods_agree_on_footers_cut_off_anywhere() {
    let made = SyntheticFooter { columns: 16, row_groups: 6, kind: SyntheticColumns::Mixed, seed: 3 }.bytes();
    for end in (0..made.len()).rev().step_by(3) {
        assert_agreement(&made[..end], &Options::new());
    }
    let (_, file) = samples::all().swap_remove(4);
    let bytes = samples::metadata(&file);
    for end in (0..bytes.len()).rev().step_by(11) {
        assert_agreement(&bytes[..end], &Options::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn methods_agree_on_mutated_footers(
        seed in 0_u64..4,
        kind in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..6),
        selection in 0_usize..8,
    ) {
        let kind = [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed][kind];
        let mut bytes = SyntheticFooter { columns: 18, row_groups: 10, kind, seed }.bytes();
        for (at, value, kind) in changes {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = value,
                1 => bytes.insert(at, value),
                2 => { bytes.remove(at); }
                _ => bytes[at] ^= 1 << (value % 8),
            }
        }
        assert_agreement(&bytes, &selections(18)[selection]);
    }
}

#[test]
fn row_groups_of_unequal_sizes_decode_alike() {
    // Growing and shrinking sizes mislead the guesses.
    let mut count = 0_usize;
    let bytes = many(60, 600, |writer, _| {
        let group = count / 600;
        count += 1;
        writer.begin(12);
        writer.binary(5, &vec![9; if group.is_multiple_of(7) { 90 } else { group % 5 }]);
        writer.stop();
    });
    let one = everything(&Footer::decode(bytes.as_slice(), &Options::new().method(Method::Scalar)));
    assert!(one == everything(&Footer::decode(bytes.as_slice(), &Options::new())));
}

#[test]
fn row_groups_that_grow_or_shrink_along_the_file_keep_their_wide_chunks() {
    // Occasional chunks beyond 32 bits must keep their places.
    for grows in [true, false] {
        let mut count = 0_usize;
        let bytes = many(1600, 20, |writer, _| {
            let group = count / 20;
            count += 1;
            if count.is_multiple_of(997) {
                writer.i64(5, 1 << 40);
            }
            writer.begin(12);
            writer.binary(5, &vec![9; if (group > 800) == grows { 40 } else { 30 }]);
            writer.stop();
        });
        for options in [Options::new(), Options::new().columns([3, 7])] {
            let scalar = options.clone().method(Method::Scalar);
            let one = everything(&Footer::decode(bytes.as_slice(), &scalar));
            assert!(one == everything(&Footer::decode(bytes.as_slice(), &options)));
        }
    }
}
