//! Text values: names of people, words, e-mail addresses, templates, patterns.

pub(crate) mod pattern;
pub(crate) mod person_name;
pub(crate) mod random_text;
pub(crate) mod template;
pub(crate) mod words;
