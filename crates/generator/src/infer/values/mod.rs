//! The `values` and lengths of a field that follow a sample.

pub(crate) mod bytes;
mod known;
pub(crate) mod lengths;
pub(crate) mod made_up;
pub(crate) mod numbers;
mod quantiles;
mod shapes;
mod texts;
