//! Intervals: months, days and milliseconds, which have no fixed ratio to one another.
//!
//! (Parquet format, `LogicalTypes.md`, INTERVAL: three unsigned numbers of 32 bits, little-endian.)

use crate::error::Result;
use crate::random::rng::{Sequence, scale64};
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;

/// Months, days and milliseconds.
pub(crate) type Parts = [u32; 3];

/// The most months and days, because Arrow's have a sign; milliseconds use all 32 bits.
const MAX: Parts = [i32::MAX as u32, i32::MAX as u32, u32::MAX];

/// Intervals whose parts are drawn independently, all values of a part with equal probability.
#[derive(Debug)]
pub(crate) struct Intervals {
    least: Parts,
    most: Parts,
}

impl Intervals {
    /// Reads `uniform = { min = "1mo", max = "6mo 20d" }`.
    pub(crate) fn read(node: SpecNode<'_>) -> Result<Self> {
        let table = node.table("uniform", &["min", "max"])?;
        let bound = |key| {
            let node = table.need(key, "uniform")?;
            let wrong = || node.unfit("{} is not an interval", LogicalType::Interval.takes());
            node.string().and_then(parse).ok_or_else(wrong)
        };
        let (least, most) = (bound("min")?, bound("max")?);
        let names = ["months", "days", "milliseconds"];
        let wrong = names.iter().zip(least.iter().zip(most)).find(|(_, (least, most))| *least > most);
        if let Some((name, (least, most))) = wrong {
            let what = format!("min has {least} {name}, max {most}");
            let advice = "months, days and times are drawn apart: give max at least as many of each";
            return Err(node.error(what, advice));
        }
        Ok(Intervals { least, most })
    }

    pub(crate) fn write(&self, draw: u64, out: &mut Vec<u8>) {
        let mut random = Sequence::new(draw);
        for (least, most) in self.least.iter().zip(self.most) {
            let value = least + scale64(random.next(), u64::from(most - least) + 1) as u32;
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// The parts of `"1y 2mo 3d 4h 5min 6.5s"`; `None` if it is not an interval.
pub(crate) fn parse(text: &str) -> Option<Parts> {
    let mut parts = [0f64; 3];
    let mut words = 0;
    for word in text.split_whitespace() {
        let at = word.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = word[..at].parse().ok()?;
        let (part, times) = match &word[at..] {
            "y" => (0, 12.0),
            "mo" => (0, 1.0),
            "w" => (1, 7.0),
            "d" => (1, 1.0),
            "h" => (2, 3_600_000.0),
            "m" | "min" => (2, 60_000.0),
            "s" => (2, 1_000.0),
            "ms" => (2, 1.0),
            _ => return None,
        };
        *parts.get_mut(part)? += number * times;
        words += 1;
    }
    let mut whole = [0; 3];
    for ((whole, part), most) in whole.iter_mut().zip(parts).zip(MAX) {
        let fits = part.fract() == 0.0 && part.is_sign_positive() && part <= f64::from(most);
        *whole = fits.then_some(part as u32)?;
    }
    (words > 0).then_some(whole)
}

/// The bytes that Parquet stores.
pub(crate) fn bytes(parts: Parts) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// The parts in stored bytes; missing ones are 0.
pub(crate) fn parts(bytes: &[u8]) -> Parts {
    let mut words = bytes.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_le_bytes));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

/// Parts in the notation of specs.
pub(crate) fn text(parts: Parts) -> String {
    let [months, days, milliseconds] = parts;
    let named = [(months, "mo"), (days, "d"), (milliseconds / 1_000, "s"), (milliseconds % 1_000, "ms")];
    let words: Vec<String> =
        named.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    if words.is_empty() { "0d".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_apart_and_are_read_from_their_own_text() {
        assert_eq!(parse("1y 2mo"), Some([14, 0, 0]));
        assert_eq!(parse("2w 3d 1.5h 2min 1s 5ms"), Some([0, 17, 5_400_000 + 121_005]));
        assert_eq!(parse("40d"), Some([0, 40, 0]));
        for parts in [[0, 0, 0], [1, 2, 3_004], [i32::MAX as u32, 7, u32::MAX]] {
            assert_eq!(parse(&text(parts)), Some(parts));
            assert_eq!(super::parts(&bytes(parts)), parts);
        }
        for wrong in ["", " ", "5", "-1d", "0.5mo", "1x", "2147483648d", "5000000s", "1d-1h", "nand", "infd"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
