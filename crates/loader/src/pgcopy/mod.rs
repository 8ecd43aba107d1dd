//! Arrow arrays as rows of PostgreSQL's binary COPY format, and nested values as jsonb.

pub(crate) mod arrays;
pub(crate) mod conversion;
pub(crate) mod from_text;
pub(crate) mod jsonb;
pub(crate) mod rows;
pub(crate) mod types;
pub(crate) mod values;
