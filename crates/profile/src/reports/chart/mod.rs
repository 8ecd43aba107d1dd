//! Pictures as SVG: lines, heat maps, and what they share.
//!
//! Each picture is drawn twice, wide and narrow, and the style sheet shows the one that fits the window: text
//! keeps its size on a telephone. Colours are classes (`f0` to `f7` fill, `l0` to `l7` stroke), which the
//! style sheet defines for light and dark themes.

pub(crate) mod axis;
pub(crate) mod frame;
pub(crate) mod heat;
pub(crate) mod letters;
pub(crate) mod line_style;
pub(crate) mod lines;
pub(crate) mod plot;
pub(crate) mod svg;
