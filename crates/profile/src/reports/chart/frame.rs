//! The sizes that a picture is drawn in.

use crate::reports::chart::svg::Drawing;

/// The size of one drawing of a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    /// The class that shows it where it fits.
    class: &'static str,
    /// Its width in pixels.
    pub(crate) width: f64,
    /// Whether it is the one for narrow windows.
    pub(crate) narrow: bool,
}

/// The width of a telephone.
const NARROW: Frame = Frame { class: "narrow", width: 340.0, narrow: true };

/// How much room a picture takes in a wide window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// The page's width.
    #[default]
    Whole,
    /// Half of it: two pictures stand side by side.
    Half,
}

/// Draws a picture for wide and for narrow windows. `title` names it, `figures` describes it for
/// readers who do not see it.
pub(crate) fn pictures(room: Room, title: &str, figures: &str, draw: impl Fn(Frame) -> Drawing) -> String {
    let wide = match room {
        Room::Whole => Frame { class: "wide", width: 840.0, narrow: false },
        Room::Half => Frame { class: "wide", width: 430.0, narrow: false },
    };
    [wide, NARROW].map(|frame| draw(frame).finish(frame.class, title, figures)).concat()
}
