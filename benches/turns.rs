//! Runs alternative ways to do the same work interleaved, and prints a table of their medians.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::io::Write;
use std::time::{Duration, Instant};

/// Names a file to append each table to as a line of JSON.
pub const JSON: &str = "SAWMILL_TURNS_JSON";

/// The time for all ways together, and the fewest and most runs of each.
const BUDGET: Duration = Duration::from_secs(6);
const MIN: usize = 15;
const MAX: usize = 501;

/// Seldom ways run in one of this many rounds.
const SELDOM: usize = 5;

struct Way<'w> {
    name: &'static str,
    /// The way that this one is compared with; `None` means the common peer.
    against: Option<&'static str>,
    /// Runs once and returns the time taken.
    run: Box<dyn FnMut() -> Duration + 'w>,
    /// Runs once in this many rounds.
    every: usize,
    times: Vec<f64>,
    /// The required speed-up over a way; the latter is `None` for the one that this is compared with.
    target: Option<(f64, Option<&'static str>)>,
}

/// Ways that run interleaved.
pub struct Turns<'w> {
    title: String,
    ways: Vec<Way<'w>>,
    peer: Option<&'static str>,
}

/// The order of the ways in a round, different in every round but the same in every run: a way that always
/// followed the same other one would find that one's data in the caches.
fn order(ways: usize, round: u64) -> Vec<usize> {
    let mut ways: Vec<usize> = (0..ways).collect();
    // SplitMix64's step over round and way (Steele and others, 2014).
    ways.sort_by_key(|way| {
        let mixed = (round << 8 | *way as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    });
    ways
}

/// Whether the arguments select this name, or nothing.
pub fn chosen(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(word.as_str()))
}

fn timed<'w>(mut run: impl FnMut() + 'w) -> impl FnMut() -> Duration + 'w {
    move || {
        let before = Instant::now();
        run();
        before.elapsed()
    }
}

impl<'w> Turns<'w> {
    /// No ways yet.
    pub fn new(title: String) -> Self {
        Self { title, ways: Vec::new(), peer: None }
    }

    fn add(&mut self, name: &'static str, against: Option<&'static str>, run: impl FnMut() -> Duration + 'w) {
        self.ways.push(Way { name, against, run: Box::new(run), every: 1, times: Vec::new(), target: None });
    }

    /// Adds a way compared with the peer.
    pub fn way(&mut self, name: &'static str, run: impl FnMut() + 'w) {
        self.add(name, None, timed(run));
    }

    /// Adds a way compared with another one.
    pub fn way_of(&mut self, name: &'static str, against: &'static str, run: impl FnMut() + 'w) {
        self.add(name, Some(against), timed(run));
    }

    /// Adds the way that the others are compared with.
    pub fn peer(&mut self, name: &'static str, run: impl FnMut() + 'w) {
        self.peer = Some(name);
        self.way(name, run);
    }

    /// Runs the last added way only in some rounds: one that takes as long as all others together leaves time
    /// for few rounds and evicts the others' data from the caches.
    pub fn seldom(&mut self) {
        if let Some(way) = self.ways.last_mut() {
            way.every = SELDOM;
        }
    }

    /// Requires the last added way to be this many times as fast as the one it is compared with.
    pub fn at_least(&mut self, times_as_fast: f64) {
        if let Some(way) = self.ways.last_mut() {
            way.target = Some((times_as_fast, None));
        }
    }

    /// Requires the last added way to be this many times as fast as another one.
    pub fn at_least_of(&mut self, times_as_fast: f64, other: &'static str) {
        if let Some(way) = self.ways.last_mut() {
            way.target = Some((times_as_fast, Some(other)));
        }
    }

    /// Adds a way that measures its own time, because part of its work must not count.
    pub fn timed(&mut self, name: &'static str, run: impl FnMut() -> Duration + 'w) {
        self.add(name, None, run);
    }

    /// The same for the way that the others are compared with.
    pub fn timed_peer(&mut self, name: &'static str, run: impl FnMut() -> Duration + 'w) {
        self.peer = Some(name);
        self.add(name, None, run);
    }

    /// Runs all ways interleaved and prints their medians, their speed-ups over their peers, and which
    /// targets are met. One round with `--test`.
    pub fn run(mut self) {
        let testing = sawmill_benches::once();
        let started = Instant::now();
        // The first round warms up caches and the allocator and is not counted.
        for round in 0..=MAX {
            if round > MIN && started.elapsed() > BUDGET || testing && round > 1 {
                break;
            }
            for place in order(self.ways.len(), round as u64) {
                let way = &mut self.ways[place];
                if round % way.every != 0 && !testing {
                    continue;
                }
                let time = (way.run)();
                if round > 0 {
                    way.times.push(time.as_secs_f64());
                }
            }
        }
        for way in &mut self.ways {
            way.times.sort_by(f64::total_cmp);
        }
        let median = |name: &str| {
            let way = self.ways.iter().find(|way| way.name == name)?;
            way.times.get(way.times.len() / 2).copied()
        };
        println!(
            "\n{}; medians of {} rounds\n",
            self.title,
            self.ways.iter().map(|way| way.times.len()).max().unwrap_or(0)
        );
        let mut ways = Vec::new();
        println!("| way | ms | times as fast | as |\n|---|---|---|---|");
        for way in &self.ways {
            let (Some(own), Some(against)) = (median(way.name), way.against.or(self.peer)) else { continue };
            let ratio = median(against).map_or(0.0, |of_peer| of_peer / own);
            println!("| {} | {:.3} | {ratio:.2} | {against} |", way.name, own * 1e3);
            ways.push(format!(
                "{{\"way\":{:?},\"seconds\":{own:e},\"times_as_fast\":{ratio},\"as\":{against:?}}}",
                way.name
            ));
        }
        if let Some(path) = std::env::var_os(JSON) {
            let line = format!("{{\"title\":{:?},\"ways\":[{}]}}\n", self.title, ways.join(","));
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes()))
                .expect("the file of figures can be written");
        }
        for way in &self.ways {
            let Some((target, other)) = way.target else { continue };
            let against = other.or(way.against).or(self.peer).unwrap_or_default();
            let ratio = median(way.name).zip(median(against)).map_or(0.0, |(own, of_peer)| of_peer / own);
            let verdict = if ratio >= target { "reached" } else { "missed" };
            println!("target {verdict}: {} at {ratio:.2} of {target} times {against}", way.name);
        }
    }
}
