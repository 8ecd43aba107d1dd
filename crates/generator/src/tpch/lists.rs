//! The columns of words that TPC-H lists: sorted, with the index of each word.

use std::sync::LazyLock;

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

/// Declares the lists, each made of these words.
macro_rules! lists {
    ($($name:ident: $words:expr,)*) => {
        #[derive(Debug)]
        pub(crate) struct Lists {
            $(pub $name: WordList,)*
        }

        impl Lists {
            /// The lists, made at the first call.
            pub(crate) fn get() -> &'static Lists {
                static LISTS: LazyLock<Lists> = LazyLock::new(|| Lists { $($name: WordList::new($words),)* });
                &LISTS
            }
        }
    };
}

lists! {
    regions: values(Distributions::regions),
    nations: values(Distributions::nations),
    segments: values(Distributions::market_segments),
    manufacturers: (1..=5).map(|m| format!("Manufacturer#{m}")),
    brands: (1..=5).flat_map(|m| (1..=5).map(move |n| format!("Brand#{m}{n}"))),
    part_types: values(Distributions::part_types),
    containers: values(Distributions::part_containers),
    statuses: "FOP".chars().map(String::from),
    priorities: values(Distributions::order_priority),
    flags: "ANR".chars().map(String::from),
    line_statuses: "FO".chars().map(String::from),
    instructions: values(Distributions::ship_instructions),
    modes: values(Distributions::ship_modes),
}

fn values(of: fn(&'static Distributions) -> &'static Distribution) -> Vec<String> {
    of(Distributions::static_default()).get_values().iter().map(|word| (*word).to_owned()).collect()
}
