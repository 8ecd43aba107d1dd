//! Measures how long it takes to find, start, restart and stop a server: medians over some rounds, ten by
//! default, in milliseconds. Run with `cargo run --release -p sawmill-localpg --example start_and_stop
//! [ROUNDS]`.

use std::time::{Duration, Instant};

use sawmill_localpg::{Binaries, Error, LocalPg};

fn main() -> Result<(), Error> {
    let rounds = std::env::args().nth(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(10);
    let names = ["find", "start", "crash and restart", "stop", "start", "drop"];
    let mut times = vec![Vec::new(); names.len()];
    for _ in 0..rounds {
        let mut clock = Instant::now();
        let mut lap = |step: usize| times[step].push(std::mem::replace(&mut clock, Instant::now()).elapsed());
        let binaries = Binaries::find_or_download(&mut |step| eprintln!("{step:?}"))?;
        lap(0);
        let mut server = LocalPg::builder().binaries(binaries.clone()).start()?;
        lap(1);
        server.restart_immediate()?;
        lap(2);
        server.stop()?;
        lap(3);
        let server = LocalPg::builder().binaries(binaries).start()?;
        lap(4);
        drop(server);
        lap(5);
    }
    for (name, times) in names.iter().zip(&mut times) {
        times.sort();
        println!("{name:18} {:7.1} ms", milliseconds(times.get(times.len() / 2)));
    }
    Ok(())
}

fn milliseconds(time: Option<&Duration>) -> f64 {
    time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}
