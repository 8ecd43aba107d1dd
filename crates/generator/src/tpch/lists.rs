//! The columns of words that TPC-H lists: sorted, with the index of each word.

use std::sync::OnceLock;

use tpchgen::distribution::{Distribution, Distributions};

/// Words in the order of their bytes.
#[derive(Debug)]
pub(crate) struct WordList(Vec<String>);

impl WordList {
    fn new(words: impl IntoIterator<Item = String>) -> Self {
        let mut words: Vec<String> = words.into_iter().collect();
        words.sort();
        words.dedup();
        WordList(words)
    }

    fn from_values(distribution: &Distribution) -> Self {
        Self::new(distribution.get_values().iter().map(|word| (*word).to_owned()))
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.0
    }

    /// The index of `word`, which is one of the list: `tpchgen` draws from the same ones.
    #[inline]
    pub(crate) fn index(&self, word: &str) -> u32 {
        let index = match self.0.len() {
            0..=8 => self.0.iter().position(|listed| listed == word),
            _ => self.0.binary_search_by(|listed| listed.as_str().cmp(word)).ok(),
        };
        debug_assert!(index.is_some(), "{word:?} is not one of {:?}", self.0);
        index.unwrap_or(0) as u32
    }
}

/// All lists.
#[derive(Debug)]
pub(crate) struct Lists {
    pub regions: WordList,
    pub nations: WordList,
    pub segments: WordList,
    pub manufacturers: WordList,
    pub brands: WordList,
    pub part_types: WordList,
    pub containers: WordList,
    pub statuses: WordList,
    pub priorities: WordList,
    pub flags: WordList,
    pub line_statuses: WordList,
    pub instructions: WordList,
    pub modes: WordList,
}

impl Lists {
    /// The lists, made at the first call.
    pub(crate) fn get() -> &'static Lists {
        static LISTS: OnceLock<Lists> = OnceLock::new();
        LISTS.get_or_init(|| {
            let known = Distributions::static_default();
            let letters = |letters: &str| WordList::new(letters.chars().map(String::from));
            Lists {
                regions: WordList::from_values(known.regions()),
                nations: WordList::from_values(known.nations()),
                segments: WordList::from_values(known.market_segments()),
                manufacturers: WordList::new((1..=5).map(|m| format!("Manufacturer#{m}"))),
                brands: WordList::new((1..=5).flat_map(|m| (1..=5).map(move |n| format!("Brand#{m}{n}")))),
                part_types: WordList::from_values(known.part_types()),
                containers: WordList::from_values(known.part_containers()),
                statuses: letters("FOP"),
                priorities: WordList::from_values(known.order_priority()),
                flags: letters("ANR"),
                line_statuses: letters("FO"),
                instructions: WordList::from_values(known.ship_instructions()),
                modes: WordList::from_values(known.ship_modes()),
            }
        })
    }
}
