//! Runs seeds of a simulation: `scripts/simulate --help`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::world::coverage::Coverage;
use crate::world::mistake::Mistake;
use crate::world::run::run;
use crate::world::{PROTOCOL, SEEDS};

const HELP: &str = "\
Runs loads and writers in a simulated world, each decided by one seed.

  --protocol P     the first option of scripts/simulate: postgres (default), cratedb or store
  --seeds N        how many seeds (default: as many as the tests)
  --first S        the first of them (default 0)
  --every N        every N-th of them, for as many processes
  --for 1h         until this time has passed (s, m, h)
  --seed S         this seed alone
  --trace          prints who did what, and when
  --mistake NAME   with a deliberate mistake; `list` prints their names";

struct Arguments {
    first: u64,
    every: u64,
    seeds: u64,
    time: Option<Duration>,
    trace: bool,
    mistake: Option<Mistake>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments { first: 0, every: 1, seeds: SEEDS, time: None, trace: false, mistake: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--trace" {
            parsed.trace = true;
            continue;
        }
        let value = words.next().ok_or(HELP)?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word} takes a number, not {value:?}"));
        match word.as_str() {
            "--seeds" => parsed.seeds = number()?,
            "--first" => parsed.first = number()?,
            "--every" => parsed.every = number()?.max(1),
            "--seed" => (parsed.first, parsed.seeds) = (number()?, 1),
            "--for" => {
                let time = sawmill_profile::parse_duration(&value).map_err(|error| error.to_string())?;
                (parsed.time, parsed.seeds) = (Some(time), u64::MAX);
            }
            "--mistake" => {
                let named = Mistake::ALL.into_iter().find(|mistake| format!("{mistake:?}") == value);
                parsed.mistake = Some(named.ok_or_else(|| format!("the mistakes are {:?}", Mistake::ALL))?);
            }
            _ => return Err(HELP.to_owned()),
        }
    }
    Ok(Arguments { seeds: parsed.seeds.div_ceil(parsed.every), ..parsed })
}

/// Runs the seeds that the command's arguments name.
pub fn main() -> ExitCode {
    if std::env::args().any(|word| word == "--help") {
        println!("{HELP}");
        return ExitCode::SUCCESS;
    }
    let Arguments { first, every, seeds, time, trace, mistake } = match arguments() {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::from(2);
        }
    };
    let (started, mut coverage, mut turns, mut count) = (Instant::now(), Coverage::default(), 0, 0);
    let mut failed = None;
    while count < seeds && time.is_none_or(|time| started.elapsed() < time) {
        let seed = first.wrapping_add(count.wrapping_mul(every));
        let outcome = run(seed, mistake, trace);
        count += 1;
        turns += outcome.turns;
        coverage.add(&outcome.coverage);
        outcome.history.iter().for_each(|line| println!("{line}"));
        if let Some(violation) = outcome.violation {
            failed = Some((seed, violation));
            break;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    if !trace {
        print!("{coverage}");
    }
    println!(
        "{count} seeds in {seconds:.1} s: {:.0} seeds/s, {:.0} turns/s",
        count as f64 / seconds,
        turns as f64 / seconds
    );
    match failed {
        None => ExitCode::SUCCESS,
        Some((seed, violation)) => {
            println!("seed {seed}: {violation}");
            let mistake = mistake.map_or_else(String::new, |mistake| format!(" --mistake {mistake:?}"));
            println!("scripts/simulate --protocol {PROTOCOL} --seed {seed}{mistake} --trace shows it");
            ExitCode::FAILURE
        }
    }
}
