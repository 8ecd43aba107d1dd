//! Encodes values for the wire: numbers, timestamps, intervals, arrays and composite values.

pub mod calendar;
pub(crate) mod element;
pub(crate) mod fixed_width;
pub(crate) mod interval;
pub(crate) mod native;
pub mod numeric;
pub(crate) mod short_numeric;
