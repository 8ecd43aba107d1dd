//! The plain ArrowWriter pipeline of the contacts dataset as a program, to measure as a whole process: `cargo
//! run --release -p sawmill-benches --features peers --example contacts_arrow_writer -- ROWS PARTS FOLDER`.

#[path = "../contacts_pipeline.rs"]
mod contacts_pipeline;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use contacts_pipeline::write_part;
use parquet60::basic::Compression;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rows, parts, folder] = words.as_slice() else { return Err("ROWS PARTS FOLDER".into()) };
    let (rows, parts): (u64, u64) = (rows.parse()?, parts.parse()?);
    let files = (0..parts).map(|part| File::create(Path::new(folder).join(format!("part_{part}.parquet"))));
    let files: Vec<File> = files.collect::<Result<_, _>>()?;
    let written: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = files
            .into_iter()
            .enumerate()
            .map(|(part, file)| {
                let part = part as u64;
                // The first parts take the remaining rows.
                let share = rows / parts + u64::from(part < rows % parts);
                scope.spawn(move || write_part(BufWriter::new(file), part, share, Compression::UNCOMPRESSED))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    println!("{{\"rows\": {written}, \"versions\": {{\"parquet (ArrowWriter)\": \"60\"}}}}");
    Ok(())
}
