//! Frames of LZ4, one after the other: of today's form, of the older one that `lz4 -l` writes, and some to skip.
//!
//! A frame of the older form has no mark at its end: the next frame ends it, or the end of the file between two
//! blocks. `lz4_flex` takes a block's cut length for that end, and the next frame for a block; so its blocks are
//! read here.

use std::io::{self, BufRead, Cursor, Read};

use lz4_flex::frame::FrameDecoder;

const FRAME: u32 = 0x184d_2204;
const OLDER_FRAME: u32 = 0x184c_2102;
/// The numbers of frames to skip, but for the last four bits.
const SKIPPED_FRAME: u32 = 0x184d_2a50;

/// The text of a block of the older form.
const OLDER_BLOCK: usize = 8 << 20;
/// The longest such block: of text that cannot be compressed.
const MAX_OLDER_BLOCK: usize = OLDER_BLOCK + OLDER_BLOCK / 255 + 16;

pub(super) struct Lz4Frames<R: BufRead> {
    decoder: FrameDecoder<Ahead<R>>,
    within: Within,
    older: OlderBlock,
}

/// The frame that is being read.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    None,
    Frame,
    Older,
}

/// A block, and the rest of its text.
#[derive(Default)]
struct OlderBlock {
    compressed: Vec<u8>,
    text: Cursor<Vec<u8>>,
}

impl<R: BufRead> Lz4Frames<R> {
    pub(super) fn new(bytes: R) -> Self {
        let decoder = FrameDecoder::new(Ahead { bytes, number: [0; 4], left: 0 });
        Self { decoder, within: Within::None, older: OlderBlock::default() }
    }

    /// Goes to the next frame that has text; `None` at the end of the file.
    fn next_frame(&mut self) -> io::Result<Option<()>> {
        while self.within == Within::None {
            let Some(number) = number(&mut self.decoder.get_mut().bytes)? else { return Ok(None) };
            self.begin(number)?;
        }
        Ok(Some(()))
    }

    /// Begins the frame of this number.
    fn begin(&mut self, number: u32) -> io::Result<()> {
        let ahead = self.decoder.get_mut();
        match number {
            FRAME => {
                (ahead.number, ahead.left) = (number.to_le_bytes(), 4);
                self.within = Within::Frame;
            }
            OLDER_FRAME => self.within = Within::Older,
            _ if number & !0xf == SKIPPED_FRAME => {
                let mut length = [0; 4];
                read_whole(&mut ahead.bytes, &mut length)?;
                let length = u64::from(u32::from_le_bytes(length));
                let skipped = io::copy(&mut ahead.bytes.by_ref().take(length), &mut io::sink())?;
                if skipped < length {
                    return Err(cut_off());
                }
            }
            _ => return Err(invalid("bytes that are not LZ4 follow the compressed data")),
        }
        Ok(())
    }

    /// Reads the next block of the older form into `older`, or begins the frame that follows it.
    fn next_older_block(&mut self) -> io::Result<()> {
        self.within = Within::None;
        let bytes = &mut self.decoder.get_mut().bytes;
        let Some(length) = number(bytes)? else { return Ok(()) };
        if length as usize > MAX_OLDER_BLOCK {
            return self.begin(length);
        }
        self.within = Within::Older;
        let OlderBlock { compressed, text } = &mut self.older;
        compressed.resize(length as usize, 0);
        read_whole(bytes, compressed)?;
        text.set_position(0);
        let text = text.get_mut();
        text.resize(OLDER_BLOCK, 0);
        let decompressed = lz4_flex::block::decompress_into(compressed, text);
        // The block that follows an error must not be read.
        text.truncate(decompressed.as_ref().copied().unwrap_or(0));
        decompressed.map(|_| ()).map_err(|error| invalid(&error.to_string()))
    }
}

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let few = self.older.text.read(buffer)?;
            if few > 0 {
                return Ok(few);
            }
            match self.within {
                Within::None => {
                    if self.next_frame()?.is_none() {
                        return Ok(0);
                    }
                }
                Within::Older => self.next_older_block()?,
                Within::Frame => match self.decoder.read(buffer)? {
                    0 => self.within = Within::None,
                    read => return Ok(read),
                },
            }
        }
    }
}

/// The bytes of a frame, from its number on. The decoder takes their end between two blocks for the end of the
/// frame, so it is an error here.
struct Ahead<R> {
    bytes: R,
    /// The number that was read to tell the frame, and how much of it is left.
    number: [u8; 4],
    left: usize,
}

impl<R: Read> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left > 0 {
            let few = buffer.len().min(self.left);
            buffer[..few].copy_from_slice(&self.number[4 - self.left..][..few]);
            self.left -= few;
            return Ok(few);
        }
        match self.bytes.read(buffer)? {
            0 if !buffer.is_empty() => Err(cut_off()),
            read => Ok(read),
        }
    }
}

/// The next four bytes; `None` at the end.
fn number(bytes: &mut impl BufRead) -> io::Result<Option<u32>> {
    if bytes.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut number = [0; 4];
    read_whole(bytes, &mut number)?;
    Ok(Some(u32::from_le_bytes(number)))
}

fn read_whole(bytes: &mut impl Read, buffer: &mut [u8]) -> io::Result<()> {
    bytes.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => cut_off(),
        _ => error,
    })
}

fn cut_off() -> io::Error {
    invalid("the last frame is cut off")
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<String, String> {
        let mut text = String::new();
        let read = Lz4Frames::new(bytes).read_to_string(&mut text);
        read.map(|_| text).map_err(|error| error.to_string())
    }

    fn frame(text: &str) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// A block of the older form, behind its length.
    fn older_block(text: &str) -> Vec<u8> {
        let block = lz4_flex::block::compress(text.as_bytes());
        [&(block.len() as u32).to_le_bytes(), block.as_slice()].concat()
    }

    fn older(text: &str) -> Vec<u8> {
        [&OLDER_FRAME.to_le_bytes(), older_block(text).as_slice()].concat()
    }

    fn to_skip() -> Vec<u8> {
        [&(SKIPPED_FRAME + 3).to_le_bytes()[..], &5_u32.to_le_bytes(), b"seven"].concat()
    }

    #[test]
    fn frames_of_all_forms_follow_one_another() {
        let (a, b) = ("1,2\n3,4\n", "5,6\n7,8\n");
        for frames in [
            [frame(a), frame(b)],
            [older(a), older(b)],
            [older(a), frame(b)],
            [frame(a), older(b)],
            [older(a), older_block(b)],
            [[to_skip(), older(a)].concat(), [to_skip(), frame(b), to_skip()].concat()],
            [frame(a), [frame(""), older(""), frame(b)].concat()],
        ] {
            assert_eq!(read(&frames.concat()).unwrap(), [a, b].concat(), "{frames:?}");
        }
        assert_eq!(read(&OLDER_FRAME.to_le_bytes()).unwrap(), "");
        let long = "1,2\n".repeat(OLDER_BLOCK / 4);
        assert_eq!(read(&[older(&long), older_block(a)].concat()).unwrap(), long + a);
    }

    #[test]
    fn a_frame_that_is_cut_off_anywhere_is_refused() {
        let whole = [frame("1,2\n"), older("3,4\n"), older_block("5,6\n"), to_skip(), frame("7,8\n")];
        let bytes = whole.concat();
        assert_eq!(read(&bytes).unwrap(), "1,2\n3,4\n5,6\n7,8\n");
        let ends = whole.iter().scan(0, |end, part| {
            *end += part.len();
            Some(*end)
        });
        // A frame of the older form may have no blocks.
        let ends: Vec<usize> = ends.chain([whole[0].len() + 4]).collect();
        for end in (1..bytes.len()).filter(|end| !ends.contains(end)) {
            let error = read(&bytes[..end]).unwrap_err();
            assert!(error.contains("cut off"), "{end} of {} bytes: {error}", bytes.len());
        }
        for after in [&b"x"[..], b"\x01\0", b"\x01\0\0", b"1,2\n3,4\n", &[0xff; 8], &u32::MAX.to_le_bytes()] {
            assert!(read(&[older("1,2\n").as_slice(), after].concat()).is_err(), "{after:?}");
            assert!(read(&[frame("1,2\n").as_slice(), after].concat()).is_err(), "{after:?}");
        }
    }
}
