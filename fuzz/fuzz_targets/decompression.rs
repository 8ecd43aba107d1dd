//! Compressed text: text compressed here has the rows of the plain text. With a byte changed or cut off, it is
//! refused or has the same rows. Any bytes after the first ones of a format are rows or an error.
#![no_main]

mod reading;
mod text_files;

use std::io::Write;

use libfuzzer_sys::fuzz_target;
use reading::{refusal, rows, with_control, written};
use sawmill_source::{DelimitedFiles, DelimitedOptions, Hive, Result};

/// How many first bytes of a file name its format: with others it is text.
const MAGIC: usize = 10;

/// As programs write it by default, with a checksum.
fn compressed(format: u8, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = match format {
        0 => flate2::write::GzEncoder::new(&mut out, flate2::Compression::fast()).write_all(text),
        1 => {
            let encoder = zstd::stream::write::Encoder::new(&mut out, 1);
            encoder.and_then(|mut encoder| {
                encoder.include_checksum(true)?;
                encoder.write_all(text)?;
                encoder.finish().map(|_| ())
            })
        }
        2 => bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast()).write_all(text),
        _ => {
            let frame = lz4_flex::frame::FrameInfo::new().content_checksum(true);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(frame, &mut out);
            encoder.write_all(text).and_then(|()| encoder.finish().map(|_| ()).map_err(Into::into))
        }
    };
    written.expect("written to memory");
    out
}

fn options() -> DelimitedOptions {
    DelimitedOptions { hive: Hive::Ignored, ..DelimitedOptions::default() }
}

fn read(bytes: &[u8]) -> Result<arrow_array::RecordBatch> {
    let path = written("packed.csv", bytes);
    let files = with_control(|control| DelimitedFiles::open(&[&path], &options(), control))?;
    rows(&files, 1 << 18, 1024)
}

fuzz_target!(|input: &[u8]| {
    let [choice, low, high, change, text @ ..] = input else { return };
    if choice & 0x80 > 0 {
        let magic: &[u8] = match choice % 6 {
            0 => b"\x1f\x8b\x08",
            1 => b"\x28\xb5\x2f\xfd",
            2 => b"BZh91AY&SY",
            3 => b"\x04\x22\x4d\x18",
            4 => b"\xfd7zXZ\0",
            _ => b"\x02\x21\x4c\x18",
        };
        // A kilobyte may hold a hundred megabytes.
        let bytes = [magic, &text[..text.len().min(1024)]].concat();
        return text_files::the_same_in_chunks("packed.csv", &bytes, &options(), *low);
    }
    let format = choice % 4;
    // Text that is not taken for another kind of file.
    let text = [b"a,b\n", text].concat();
    let mut bytes = compressed(format, &text);
    let plain = read(&text);
    match (&plain, read(&bytes)) {
        (Ok(plain), Ok(packed)) => assert_eq!(*plain, packed),
        (Err(plain), Err(packed)) => drop((refusal(plain), refusal(&packed))),
        (plain, packed) => panic!("plain: {plain:?}\ncompressed: {packed:?}"),
    }
    let at = MAGIC + usize::from(u16::from_le_bytes([*low, *high])) % (bytes.len() - MAGIC);
    if *change == 0 {
        bytes.truncate(at);
        let cut = read(&bytes);
        assert!(cut.is_err(), "cut at {at}: {cut:?}");
        return;
    }
    bytes[at] ^= change;
    match (&plain, read(&bytes)) {
        (_, Err(error)) => drop(refusal(&error)),
        (Ok(plain), Ok(changed)) => assert_eq!(*plain, changed, "byte {at}"),
        (Err(plain), Ok(changed)) => panic!("byte {at}, plain: {plain}\nchanged: {changed:?}"),
    }
});
