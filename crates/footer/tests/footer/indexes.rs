//! An index finds every chunk and distinguishes its footer from others.

use proptest::prelude::*;
use sawmill_footer::{Footer, FooterIndex, Options, SyntheticColumns, SyntheticFooter};

#[test]
fn a_saved_index_finds_every_chunk() {
    for kind in [SyntheticColumns::Float, SyntheticColumns::Mixed] {
        let bytes = SyntheticFooter { columns: 70, row_groups: 9, kind, seed: 2 }.bytes();
        let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
        let kept = footer.index().unwrap().to_bytes();
        let index = FooterIndex::from_bytes(kept).unwrap();
        index.fits(&bytes).unwrap();
        assert_eq!(index.schema().unwrap(), footer.schema());
        for group in footer.row_groups() {
            for chunk in group.columns() {
                let found = index.chunk(&bytes, group.index(), chunk.leaf()).unwrap().unwrap();
                assert_eq!(found.byte_range(), chunk.byte_range());
                assert_eq!(
                    (found.num_values(), found.uncompressed_size()),
                    (chunk.num_values(), chunk.uncompressed_size())
                );
                assert_eq!((found.physical_type(), found.codec()), (chunk.physical_type(), chunk.codec()));
                assert_eq!(found.encodings(), chunk.encodings());
                assert_eq!(found.details().unwrap(), chunk.details().unwrap());
            }
        }
        assert!(
            index.chunk(&bytes, 9, 0).unwrap().is_none() && index.chunk(&bytes, 0, 70).unwrap().is_none()
        );
    }
}

#[test]
fn an_index_recognises_its_footer_and_part_of_a_footer_has_none() {
    let made =
        |seed| SyntheticFooter { columns: 70, row_groups: 9, kind: SyntheticColumns::Mixed, seed }.bytes();
    let footer = Footer::decode(made(2), &Options::new()).unwrap();
    let index = footer.index().unwrap();
    assert!(index.fits(&made(3)).unwrap_err().advice().contains("write the index again"));
    assert!(index.chunk(&made(2)[1..], 0, 0).is_err());
    assert!(Footer::decode(made(2), &Options::new().columns([1])).unwrap().index().is_none());
    assert!(Footer::decode(made(2), &Options::new().row_groups(0..2)).unwrap().index().is_none());
}

fn small() -> Vec<u8> {
    SyntheticFooter { columns: 5, row_groups: 3, kind: SyntheticColumns::Text, seed: 2 }.bytes()
}

fn kept(footer: &[u8]) -> Vec<u8> {
    Footer::decode(footer, &Options::new()).unwrap().index().unwrap().to_bytes()
}

#[test]
fn a_saved_index_with_any_byte_changed_is_rejected_with_advice_to_rewrite_it() {
    let kept = kept(&small());
    FooterIndex::from_bytes(kept.as_slice()).unwrap();
    for at in 0..kept.len() {
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = kept.clone();
            damaged[at] ^= change;
            let error = FooterIndex::from_bytes(damaged).unwrap_err();
            assert!(error.advice().contains("write the index again"), "{error}");
        }
        assert!(FooterIndex::from_bytes(&kept[..at]).is_err(), "cut off at {at}");
    }
    let mut longer = kept.clone();
    longer.extend_from_slice(&[0; 8]);
    assert!(FooterIndex::from_bytes(longer).is_err());
}

#[test]
fn a_saved_index_with_two_locators_swapped_is_rejected() {
    let kept = kept(&small());
    for (one, other) in [(0, 1), (3, 9), (13, 14)] {
        let mut swapped = kept.clone();
        let locators = swapped[48..].as_chunks_mut::<8>().0;
        assert_ne!(locators[one], locators[other]);
        locators.swap(one, other);
        let error = FooterIndex::from_bytes(swapped).unwrap_err();
        assert!(error.what().contains("checksum"), "{error}");
    }
}

#[test]
fn an_index_of_an_earlier_release_is_rejected_with_its_version() {
    let mut old = kept(&small());
    old[7] = b'3';
    let error = FooterIndex::from_bytes(old).unwrap_err();
    assert!(error.what().contains("of version 4, found one of version 3"), "{error}");
    assert!(error.advice().contains("write the index again"), "{error}");
}

#[test]
fn a_footer_with_any_byte_changed_returns_the_same_chunks_or_an_error() {
    let bytes = small();
    let index = FooterIndex::from_bytes(kept(&bytes)).unwrap();
    let footer = Footer::decode(bytes.as_slice(), &Options::new()).unwrap();
    let (mut refused, mut returned) = (0, 0);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x04;
        if index.fits(&changed).is_err() {
            refused += 1;
        }
        for chunk in footer.row_groups().flat_map(|group| group.columns()) {
            match index.chunk(&changed, chunk.row_group().index(), chunk.leaf()) {
                Ok(found) => {
                    returned += 1;
                    assert_eq!(found.unwrap().details().unwrap(), chunk.details().unwrap(), "byte {at}");
                }
                Err(error) => assert!(error.advice().contains("write the index again"), "{error}"),
            }
        }
    }
    assert!(refused > 0 && returned > 0);
}

#[test]
fn an_index_built_by_a_pass_equals_one_of_a_decoded_footer() {
    for kind in [SyntheticColumns::Float, SyntheticColumns::Mixed] {
        let bytes = SyntheticFooter { columns: 70, row_groups: 9, kind, seed: 4 }.bytes();
        let built = FooterIndex::build(bytes.as_slice(), &Options::new()).unwrap();
        assert_eq!(built.to_bytes(), kept(&bytes));
        assert_eq!(FooterIndex::from_bytes(built.to_bytes()).unwrap().to_bytes(), built.to_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn broken_indexes_do_no_harm(at in any::<prop::sample::Index>(), value in any::<u8>(), end in any::<prop::sample::Index>()) {
        let bytes = SyntheticFooter { columns: 5, row_groups: 3, kind: SyntheticColumns::Text, seed: 2 }.bytes();
        let mut kept = Footer::decode(bytes.as_slice(), &Options::new()).unwrap().index().unwrap().to_bytes();
        let at = at.index(kept.len());
        kept[at] = value;
        if value % 2 == 0 {
            kept.truncate(1 + end.index(kept.len()));
        }
        if let Ok(index) = FooterIndex::from_bytes(kept) {
            for chunk in 0..15 {
                if let Ok(Some(found)) = index.chunk(&bytes, chunk / 5, chunk % 5) {
                    let _ = (found.byte_range(), found.details().is_ok());
                }
            }
        }
    }
}
