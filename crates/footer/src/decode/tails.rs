//! The tails of column chunks: statistics, page encoding statistics and index locations, the fields after the numbers
//! that a row stores. Nothing in them is decoded at first, and many chunks have tails of one form.
//!
//! A form is learned from one tail that the quick walk has walked: which bytes a walk depends on. Headers and lengths
//! have to be the same; of a varint, only which byte is its last; values may be any. A tail with these bytes
//! ends where a walk would end, and has its statistics at the same place.

use std::ops::Range;

use crate::thrift::cursor::{BINARY, FALSE, I32, I64, LIST, STOP, STRUCT, TRUE};

/// Longer tails are walked: this is enough for four bounds of eight bytes, page encoding statistics, and locations.
const MAX_LEN: usize = 96;

/// How many forms are kept at most, and how many places they have: two kinds of chunks seldom share one.
pub(crate) const MAX_FORMS: usize = 64;
const PLACES: usize = 256;

/// How often a form must have failed in vain, after it was of use, before another replaces it.
const PATIENCE: u8 = 2;

/// A form of tails.
#[derive(Debug)]
struct Form {
    bytes: [u8; MAX_LEN],
    mask: [u8; MAX_LEN],
    len: usize,
    /// The field id before the tail.
    id: u8,
    patience: u8,
}

/// The forms so far.
#[derive(Debug)]
pub(crate) struct Tails {
    forms: Vec<Form>,
    /// Where the form of tails with a hash is, plus one; 0 for none.
    places: [u8; PLACES],
    /// Recent keys of traits with the traits' index, by a hash.
    traits: [(u64, u16); RECENT],
}

/// How many keys of traits to remember.
const RECENT: usize = 32;

/// Mixes all bits into the highest ones.
const MIXER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Default for Tails {
    fn default() -> Self {
        Self { forms: Vec::new(), places: [0; PLACES], traits: [(0, 0); RECENT] }
    }
}

impl Tails {
    /// The length of the tail at `start` after the field `id`, in a chunk of a column below [`MAX_FORMS`] (0 if columns
    /// share their forms), or where to keep its form once it has been walked.
    #[inline(always)]
    pub fn len_of(
        &mut self,
        bytes: &[u8],
        start: usize,
        id: u8,
        key: u64,
        column: u64,
    ) -> Result<usize, usize> {
        let Some(window) = bytes.get(start..).and_then(|rest| rest.first_chunk::<MAX_LEN>()) else {
            return Err(PLACES);
        };
        let place = place_of(window, id, key, column);
        let Some(form) = self.forms.get_mut(usize::from(self.places[place]).wrapping_sub(1)) else {
            return Err(place);
        };
        let differ = window.iter().zip(&form.bytes).zip(&form.mask);
        let differ = differ.fold(0, |differ, ((found, byte), mask)| differ | (found ^ byte) & mask);
        if differ == 0 && form.id == id {
            form.patience = PATIENCE;
            return Ok(form.len);
        }
        form.patience = form.patience.saturating_sub(1);
        Err(if form.patience == 0 { place } else { PLACES })
    }

    /// The index of the traits with this key, from `find` unless it is known.
    #[inline(always)]
    pub fn traits_of(&mut self, key: u64, find: impl FnOnce() -> Option<u16>) -> Option<u16> {
        let known = &mut self.traits[(key.wrapping_mul(MIXER) >> 59) as usize];
        if known.0 != key {
            *known = (key, find()?);
        }
        Some(known.1)
    }

    /// Keeps the form of a walked tail at a place from [`Tails::len_of`].
    #[inline(never)]
    pub fn learn(&mut self, bytes: &[u8], tail: Range<usize>, id: u8, place: usize) {
        let Some(known) = self.places.get_mut(place) else { return };
        let Some(form) = bytes.get(tail).and_then(|tail| Form::new(tail, id)) else { return };
        match self.forms.get_mut(usize::from(*known).wrapping_sub(1)) {
            Some(known) => *known = form,
            None => {
                if self.forms.len() < MAX_FORMS {
                    self.forms.push(form);
                    *known = self.forms.len() as u8;
                }
            }
        }
    }
}

/// Where to look for the form of a tail: by the key of the chunk's traits, which says much of it, and the first headers.
#[inline(always)]
fn place_of(window: &[u8; MAX_LEN], id: u8, key: u64, column: u64) -> usize {
    let length = if window[1] & 0x0f == BINARY { window[2] } else { 0 };
    let start = u32::from_le_bytes([window[0], window[1], length, id]);
    // The codec says nothing; the column has its place.
    ((u64::from(start) << 32 ^ key & 0x80ff_ffff_ffff_ffff ^ column << 56).wrapping_mul(MIXER) >> 56) as usize
}

impl Form {
    /// The form of a whole tail after the field `id`; `None` if it is too long, or has what the quick walk leaves alone.
    fn new(tail: &[u8], id: u8) -> Option<Self> {
        let mut form = Self { bytes: [0; MAX_LEN], mask: [0; MAX_LEN], len: 0, id, patience: PATIENCE };
        form.bytes.get_mut(..tail.len())?.copy_from_slice(tail);
        // The rest of the metadata, then of the chunk.
        form.fields(tail)?;
        form.fields(tail)?;
        (form.len == tail.len()).then_some(form)
    }

    /// Marks the next byte with a mask, and returns it.
    fn mark(&mut self, tail: &[u8], mask: u8) -> Option<u8> {
        let byte = *tail.get(self.len)?;
        *self.mask.get_mut(self.len)? = mask;
        self.len += 1;
        Some(byte)
    }

    /// Marks the fields up to the end of a struct. Each of them takes a byte, which bounds the recursion.
    fn fields(&mut self, tail: &[u8]) -> Option<()> {
        loop {
            match self.mark(tail, 0xff)? {
                STOP => return Some(()),
                // A header without a delta has the id in the next bytes.
                1..0x10 => return None,
                header => self.value(tail, header & 0x0f)?,
            }
        }
    }

    fn value(&mut self, tail: &[u8], wire: u8) -> Option<()> {
        match wire {
            TRUE | FALSE => {}
            I32 | I64 => while self.mark(tail, 0x80)? >= 0x80 {},
            BINARY => self.len += usize::from(self.mark(tail, 0xff).filter(|&len| len < 0x80)?),
            STRUCT => self.fields(tail)?,
            LIST => {
                let header = self.mark(tail, 0xff)?;
                let (count, element) = (header >> 4, header & 0x0f);
                if count == 15 || element != I64 && element != STRUCT {
                    return None;
                }
                for _ in 0..count {
                    self.value(tail, element)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}
