//! The kernel for processors with AVX2 and fast BMI2 (Haswell, Zen 3 and later).
//!
//! A segment is two 32-byte loads. A bitmap of the bytes without a continuation bit marks the ends of tokens.
//! A bit deposit finds the start of any token, so that comparing constants and decoding varints do not wait
//! for one another. A bit extraction closes the gaps between the groups of a varint.
//!
//! Chunks of several row groups go through each segment together. If one of them does not match or needs a
//! closer look, all lanes are examined separately for this segment.
#![allow(unsafe_code, reason = "instructions of a detected processor, and loads whose bounds are checked")]

use std::arch::x86_64::*;
use std::sync::OnceLock;

use crate::matching::kernel::{PREFETCH, Task, Values};
use crate::matching::shape::{Constants, DecodedVarint, Mark, Segment, Shape, WINDOW};
use crate::memory::pages::prefetch;
use crate::thrift::varint::{TOP_BITS, word};

/// The bytes that must exist from a segment's start: its window and one word after it.
const REACH: usize = WINDOW + 16;

/// The offset of a lane that does not match: past the end of any bytes.
const NOWHERE: usize = usize::MAX;

/// A segment with the tokens to compare and decode.
#[derive(Clone, Copy)]
struct SegmentTokens<'a> {
    segment: &'a Segment,
    constants: &'a [Constants],
    decoded: &'a [DecodedVarint],
}

impl Shape {
    /// The segments in order, with the tokens to compare and decode in each.
    #[inline(always)]
    fn with_tokens(&self) -> impl Iterator<Item = SegmentTokens<'_>> {
        let (mut constants, mut decoded) = (self.constants.as_slice(), self.decoded.as_slice());
        self.segments.iter().map(move |segment| {
            let (here, rest) = constants.split_at_checked(segment.constants as usize).unwrap_or_default();
            constants = rest;
            let (varints, rest) = decoded.split_at_checked(segment.decoded as usize).unwrap_or_default();
            decoded = rest;
            SegmentTokens { segment, constants: here, decoded: varints }
        })
    }
}

/// Exists only where the processor has the features: see [`Avx2::detect`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The kernel, if the processor has every required feature.
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && deposits_bits_quickly();
        found.then_some(Self(()))
    }

    /// Runs `task` compiled for the kernel's processor.
    #[inline(always)]
    pub fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: an `Avx2` exists only if the features were detected.
        unsafe { enter(self, task) }
    }

    /// Where the chunks at `starts` end, for those that match the shape, and their values if `VALUES`. A lane
    /// is 0, and its values are undefined, if its chunk does not match or the kernel cannot tell (near the
    /// end of the bytes, for example).
    #[inline(always)]
    pub fn step<const VALUES: bool, const LANES: usize>(
        self,
        bytes: &[u8],
        starts: [usize; LANES],
        shape: &Shape,
        values: &mut [Values; LANES],
    ) -> [usize; LANES] {
        for start in starts {
            prefetch(bytes, start, PREFETCH);
        }
        // SAFETY: an `Avx2` exists only if the features were detected.
        unsafe { step::<VALUES, LANES>(bytes, starts, shape, values) }
    }
}

/// Whether depositing and extracting bits takes only a few cycles. AMD processors before Zen 3 (family 19h)
/// take up to some hundred (Agner Fog, Instruction tables): the walk is faster there.
fn deposits_bits_quickly() -> bool {
    static QUICKLY: OnceLock<bool> = OnceLock::new();
    // Cached: on a virtual machine every CPUID instruction exits to the host.
    *QUICKLY.get_or_init(|| {
        // SAFETY: every processor that runs 64-bit code has the instruction. The function is safe from Rust 1.94 on.
        #[allow(unused_unsafe, reason = "older compilers need it")]
        let (leaf, features) = unsafe { (__cpuid(0), __cpuid(1)) };
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat();
        let version = features.eax;
        // The extended family counts only if the family is 15 (CPUID, Fn0000_0001 EAX).
        let (family, extended) = (version >> 8 & 0xf, version >> 20 & 0xff);
        let family = if family == 15 { family + extended } else { family };
        family >= 0x19 || vendor != b"AuthenticAMD" && vendor != b"HygonGenuine"
    })
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn enter<T: Task>(kernel: Avx2, task: T) -> T::Output {
    task.run(kernel)
}

/// The bits in which 32 bytes differ under a mask.
#[target_feature(enable = "avx2")]
#[inline]
fn other(found: __m256i, fixed: &[u8; WINDOW], mask: &[u8; WINDOW], half: usize) -> __m256i {
    let load = |bytes: &[u8; WINDOW]| {
        let (halves, _) = bytes.as_chunks::<32>();
        // SAFETY: the reference is to 32 readable bytes; the load requires no alignment.
        unsafe { _mm256_loadu_si256(halves[half & 1].as_ptr().cast()) }
    };
    _mm256_and_si256(_mm256_xor_si256(found, load(fixed)), load(mask))
}

/// Where the segment at `at` ends, or [`NOWHERE`].
///
/// # Safety
///
/// The processor has the features that [`Avx2::detect`] checks; the same holds for the other unsafe functions
/// here.
#[inline(always)]
unsafe fn matched<const VALUES: bool>(
    bytes: &[u8],
    at: usize,
    part: SegmentTokens<'_>,
    values: &mut Values,
) -> usize {
    let SegmentTokens { segment, constants, decoded } = part;
    let Some(window) = bytes.get(at..).and_then(|rest| rest.first_chunk::<REACH>()) else {
        return NOWHERE;
    };
    // SAFETY: the caller ensures the features; the loads are within the window.
    unsafe {
        let low = _mm256_loadu_si256(window.as_ptr().cast());
        let high = _mm256_loadu_si256(window.as_ptr().add(32).cast());
        let differ = _mm256_or_si256(
            other(low, &segment.fixed, &segment.mask, 0),
            other(high, &segment.fixed, &segment.mask, 1),
        );
        if _mm256_testz_si256(differ, differ) == 0 {
            return NOWHERE;
        }
        if let Mark::Fixed(place) = segment.statistics {
            values.statistics = at + place as usize;
        }
        if segment.tokens == 0 {
            let len = segment.fixed_len as usize;
            let skipped = if segment.skips { window[(len - 1) % WINDOW] } else { 0 };
            return at + len + usize::from(skipped);
        }
        // Bits of bytes with a continuation bit, and of those without one, starting with the first token.
        let continued =
            u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32;
        let tokens = segment.first.wrapping_neg();
        let ended = !continued & tokens;
        let last = _pdep_u64(segment.last_token, ended);
        // Where the tokens start. One that starts after the window's last byte has no bit: the result is 64,
        // its offset.
        let starts = ended << 1 | segment.first;
        let mut differ = 0;
        for constant in constants {
            let found = word(window, place(constant.token, starts)).unwrap_or(!constant.bytes);
            differ |= (found ^ constant.bytes) & constant.mask;
        }
        // Eight continuation bits in a row mean a varint of more than eight bytes; only the scalar walk can
        // tell whether it is valid.
        let within = continued & last.wrapping_sub(1) & tokens;
        let two = within & within >> 1;
        let four = two & two >> 2;
        if differ | four & four >> 4 != 0 || last == 0 {
            return NOWHERE;
        }
        if let Mark::Token(token) = segment.statistics {
            values.statistics = at + place(token, starts);
        }
        if VALUES {
            for varint in decoded {
                let found = word(window, place(varint.token, starts)).unwrap_or(0);
                values.lanes[usize::from(varint.lane & 7)] = integer(found);
            }
        }
        let len = last.trailing_zeros() as usize + 1;
        if !segment.skips {
            return at + len;
        }
        // The last token, of one or two bytes, is the number of bytes to skip.
        let low = usize::from(window[(len - 1) % WINDOW]);
        if last & starts != 0 {
            return at + len + low;
        }
        if last >> 1 & starts != 0 {
            return at + len + (low << 7 | usize::from(window[(len - 2) % WINDOW]) & 0x7f);
        }
        NOWHERE
    }
}

/// Implements [`Avx2::step`]. All lanes finish a segment before any starts the next, so that no
/// lane waits for another and the constants are loaded once.
#[inline(always)]
unsafe fn step<const VALUES: bool, const LANES: usize>(
    bytes: &[u8],
    starts: [usize; LANES],
    shape: &Shape,
    values: &mut [Values; LANES],
) -> [usize; LANES] {
    let mut lanes = Progress { at: starts, stopped: 0 };
    for part in shape.with_tokens() {
        let ends = match windows(bytes, lanes.at) {
            None => None,
            // SAFETY: the caller ensures the features.
            Some(windows) => unsafe { together::<VALUES, LANES>(windows, lanes.at, part, values) },
        };
        match ends {
            Some(ends) => lanes.at = ends,
            None => {
                // SAFETY: the caller ensures the features.
                lanes = unsafe { apart::<VALUES, LANES>(bytes, lanes, part, values) };
                if lanes.stopped == (1 << LANES) - 1 {
                    break;
                }
            }
        }
    }
    let mut ends = lanes.at;
    for (lane, end) in ends.iter_mut().enumerate() {
        // Skipped bytes may end after the last byte.
        if lanes.stopped >> lane & 1 != 0 || *end > bytes.len() {
            *end = 0;
        }
    }
    ends
}

/// The progress of each lane.
#[derive(Clone, Copy)]
struct Progress<const LANES: usize> {
    /// Where the next segment starts.
    at: [usize; LANES],
    /// The stopped lanes as bits.
    stopped: u32,
}

/// Matches a segment lane by lane because a lane does not match or needs a closer look.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn apart<const VALUES: bool, const LANES: usize>(
    bytes: &[u8],
    mut lanes: Progress<LANES>,
    part: SegmentTokens<'_>,
    values: &mut [Values; LANES],
) -> Progress<LANES> {
    let mut moving = None;
    for (lane, values) in values.iter_mut().enumerate() {
        if lanes.stopped >> lane & 1 != 0 {
            continue;
        }
        // SAFETY: the function has the features.
        match unsafe { matched::<VALUES>(bytes, lanes.at[lane], part, values) } {
            NOWHERE => lanes.stopped |= 1 << lane,
            end => {
                lanes.at[lane] = end;
                moving = Some(end);
            }
        }
    }
    // A stopped lane continues as a copy of an active one, so that the others stay together.
    if let Some(end) = moving {
        for lane in (0..LANES).filter(|lane| lanes.stopped >> lane & 1 != 0) {
            lanes.at[lane] = end;
        }
    }
    lanes
}

/// The `REACH` bytes at every lane's offset, if the bytes contain them all.
#[inline(always)]
fn windows<const LANES: usize>(bytes: &[u8], at: [usize; LANES]) -> Option<[&[u8; REACH]; LANES]> {
    let limit = bytes.len().checked_sub(REACH)?;
    let mut windows = [&[0; REACH]; LANES];
    for lane in 0..LANES {
        if at[lane] > limit {
            return None;
        }
        // SAFETY: `REACH` bytes from any place up to the limit lie within the bytes.
        windows[lane] = unsafe { &*bytes.as_ptr().add(at[lane]).cast::<[u8; REACH]>() };
    }
    Some(windows)
}

/// Where a segment ends in each lane; `None` if a lane does not match or needs a closer look.
#[inline(always)]
unsafe fn together<const VALUES: bool, const LANES: usize>(
    windows: [&[u8; REACH]; LANES],
    at: [usize; LANES],
    part: SegmentTokens<'_>,
    values: &mut [Values; LANES],
) -> Option<[usize; LANES]> {
    let SegmentTokens { segment, constants, decoded } = part;
    // SAFETY: the caller ensures the features; the loads are within the windows.
    unsafe {
        let mut ends = at;
        let mut continued = [0; LANES];
        let mut differ = _mm256_setzero_si256();
        for lane in 0..LANES {
            let low = _mm256_loadu_si256(windows[lane].as_ptr().cast());
            let high = _mm256_loadu_si256(windows[lane].as_ptr().add(32).cast());
            differ = _mm256_or_si256(differ, other(low, &segment.fixed, &segment.mask, 0));
            differ = _mm256_or_si256(differ, other(high, &segment.fixed, &segment.mask, 1));
            continued[lane] = u64::from(_mm256_movemask_epi8(low) as u32)
                | u64::from(_mm256_movemask_epi8(high) as u32) << 32;
        }
        if segment.tokens == 0 {
            let len = segment.fixed_len as usize;
            for lane in 0..LANES {
                let skipped = if segment.skips { window_byte(windows[lane], len - 1) } else { 0 };
                ends[lane] += len + skipped;
            }
            if _mm256_testz_si256(differ, differ) == 0 {
                return None;
            }
            if let Mark::Fixed(place) = segment.statistics {
                for lane in 0..LANES {
                    values[lane].statistics = at[lane] + place as usize;
                }
            }
            return Some(ends);
        }
        let tokens = segment.first.wrapping_neg();
        let (mut starts, mut last, mut within) = ([0; LANES], [0; LANES], [0; LANES]);
        let mut farthest = 0;
        for lane in 0..LANES {
            let ended = !continued[lane] & tokens;
            last[lane] = _pdep_u64(segment.last_token, ended);
            starts[lane] = ended << 1 | segment.first;
            within[lane] = (ended ^ tokens) & last[lane].wrapping_sub(1);
            let len = last[lane].trailing_zeros() as usize;
            farthest |= len;
            ends[lane] += len + 1;
        }
        // The last token is missing if its bit is the 64th.
        let mut strange = (farthest & WINDOW) as u64;
        if segment.skips {
            for lane in 0..LANES {
                // A two-byte token if the last token does not start with its last byte.
                strange |= u64::from(last[lane] & starts[lane] == 0);
                ends[lane] += window_byte(windows[lane], last[lane].trailing_zeros() as usize);
            }
        }
        differ = _mm256_or_si256(differ, runs_of_eight(within));
        for constant in constants {
            for lane in 0..LANES {
                let found = word(windows[lane], place(constant.token, starts[lane]))?;
                strange |= (found ^ constant.bytes) & constant.mask;
            }
        }
        if strange != 0 || _mm256_testz_si256(differ, differ) == 0 {
            return None;
        }
        match segment.statistics {
            Mark::Absent => {}
            Mark::Fixed(place) => {
                for lane in 0..LANES {
                    values[lane].statistics = at[lane] + place as usize;
                }
            }
            Mark::Token(token) => {
                for lane in 0..LANES {
                    values[lane].statistics = at[lane] + place(token, starts[lane]);
                }
            }
        }
        if VALUES {
            for varint in decoded {
                for lane in 0..LANES {
                    let found = word(windows[lane], place(varint.token, starts[lane]))?;
                    values[lane].lanes[usize::from(varint.lane & 7)] = integer(found);
                }
            }
        }
        Some(ends)
    }
}

/// Nonzero if any of at most four lanes has a run of eight set bits.
#[target_feature(enable = "avx2")]
#[inline]
fn runs_of_eight<const LANES: usize>(bits: [u64; LANES]) -> __m256i {
    let lane = |lane: usize| bits.get(lane).map_or(0, |bits| *bits as i64);
    let bits = _mm256_set_epi64x(lane(3), lane(2), lane(1), lane(0));
    let two = _mm256_and_si256(bits, _mm256_srli_epi64::<1>(bits));
    let four = _mm256_and_si256(two, _mm256_srli_epi64::<2>(two));
    _mm256_and_si256(four, _mm256_srli_epi64::<4>(four))
}

/// Where the token with this bit starts, given all token `starts`; 64 if it starts after the window's last
/// byte.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
fn place(token: u64, starts: u64) -> usize {
    _pdep_u64(token, starts).trailing_zeros() as usize
}

/// Decodes the integer whose varint starts the word and has at most eight bytes.
#[target_feature(enable = "bmi1,bmi2")]
#[inline]
fn integer(word: u64) -> i64 {
    let stops = !word & TOP_BITS;
    let value = _pext_u64(word & (stops ^ stops.wrapping_sub(1)), !TOP_BITS);
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[inline(always)]
fn window_byte(window: &[u8; REACH], at: usize) -> usize {
    usize::from(window[at % WINDOW])
}
