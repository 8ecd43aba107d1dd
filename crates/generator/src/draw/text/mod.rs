//! Text values: names of people, words, e-mail addresses, templates, patterns.
//!
//! Most are written into a slice with room for the longest value and [`PADDING`], so that parts are copied at a
//! fixed size, without a look at the end of a vector for each.

pub(crate) mod distinct;
pub(crate) mod email;
pub(crate) mod localized;
pub(crate) mod pattern;
pub(crate) mod person_name;
pub(crate) mod random_text;
pub(crate) mod template;
pub(crate) mod uuid;
pub(crate) mod words;

/// How many bytes after the longest value may be overwritten.
pub(crate) const PADDING: usize = 16;
