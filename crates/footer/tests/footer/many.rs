//! Many files in a row, where one leaves its schema and its shapes to the next: each must still decode as if
//! it were alone.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;

use sawmill_footer::{Decoder, Footer, Method, Options};

use crate::handmade::{STRUCT, chunk, schema};
use crate::synthetic::{SyntheticColumns, SyntheticFooter};
use crate::thrift_writer::ThriftWriter;

/// A file that contains only a footer.
fn file(metadata: &[u8]) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    file.extend_from_slice(metadata);
    file.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    file.extend_from_slice(b"PAR1");
    file
}

/// Everything that a footer states, or the error.
fn contents(footer: &Result<Footer, sawmill_footer::Error>) -> String {
    let footer = match footer {
        Ok(footer) => footer,
        Err(error) => return error.to_string(),
    };
    let mut text =
        format!("{footer:?} {:?} {:?} {:?}", footer.schema(), footer.created_by(), footer.file_len());
    text += &format!(
        "{} {:?} {} {:?} {:?} {:?} {:?}",
        footer.num_rows(),
        footer.key_value_metadata().collect::<Vec<_>>(),
        footer.has_key_value_metadata(),
        footer.column_orders(),
        footer.encryption_algorithm(),
        footer.footer_signing_key_metadata(),
        footer.trailing_bytes(),
    );
    for chunk in footer.row_groups().flat_map(|group| group.columns()) {
        text += &format!("{chunk:?} {} {:?}", chunk.footer_offset(), chunk.details());
    }
    text
}

#[test]
fn files_opened_in_sequence_decode_as_if_opened_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut add = |bytes: &[u8]| {
        let path = directory.path().join(format!("{:03}.parquet", paths.len()));
        std::fs::write(&path, bytes).unwrap();
        paths.push(path);
    };
    let kinds = [SyntheticColumns::Float, SyntheticColumns::Text, SyntheticColumns::Mixed];
    for seed in 0..12 {
        for (place, kind) in kinds.into_iter().enumerate() {
            // Few columns and many, in runs of equal files.
            let columns = [3, 3, 17, 40][(seed as usize / 3 + place) % 4];
            let row_groups = 1 + seed as usize % 5;
            let metadata = SyntheticFooter { columns, row_groups, kind, seed: seed / 2 }.bytes();
            add(&file(&metadata));
            let mut broken = metadata.clone();
            let at = metadata.len() * (seed as usize + 1) / 14;
            broken[at] ^= 0x55;
            add(&file(&broken));
        }
        add(&file(&[])[..4 + seed as usize % 9]);
        add(b"");
    }
    paths.push(directory.path().to_owned());
    paths.push(directory.path().join("nowhere.parquet"));
    for options in [
        Options::new(),
        Options::new().tail_hint(1),
        Options::new().row_groups(1..3),
        Options::new().method(Method::Portable).threads(3),
        Options::new().method(Method::Scalar),
    ] {
        let alone: Vec<String> =
            paths.iter().map(|path| contents(&Footer::open_with(path, &options))).collect();
        let together = Mutex::new(vec![String::new(); paths.len()]);
        let kept = Mutex::new(Vec::new());
        Footer::open_many(&paths, &options, |place, footer| {
            together.lock().unwrap()[place] = contents(&footer);
            // Keep some footers: their bytes must not change.
            if place % 3 == 0 {
                kept.lock().unwrap().push((place, footer));
            }
            ControlFlow::Continue(())
        });
        for (place, footer) in kept.into_inner().unwrap() {
            assert_eq!(contents(&footer), alone[place]);
        }
        assert_eq!(together.into_inner().unwrap(), alone);
        let mut decoder = Decoder::new(options.clone());
        let one_by_one: Vec<String> = paths.iter().map(|path| contents(&decoder.open(path))).collect();
        assert_eq!(one_by_one, alone);
    }
}

/// The fields of a footer after its schema, with `row_groups` row groups, in one of several orders.
fn with_trailing_fields(writer: &mut ThriftWriter, row_groups: u64, kind: usize) {
    let created_by = |writer: &mut ThriftWriter| writer.binary(6, b"somebody");
    if kind == 3 {
        created_by(writer);
    }
    writer.i64(3, 10 * row_groups as i64);
    writer.list(4, STRUCT, row_groups);
    for _ in 0..row_groups {
        writer.begin_element();
        writer.list(1, STRUCT, 1);
        chunk(writer, |_| {});
        writer.i64(2, 200);
        writer.i64(3, 10);
        writer.stop();
    }
    if kind != 4 {
        writer.list(5, STRUCT, 1);
        writer.begin_element();
        writer.binary(1, if kind == 1 { b"kez" } else { b"key" });
        writer.binary(2, &[b'v'; 40][..if kind == 2 { 39 } else { 40 }]);
        writer.stop();
    }
    if kind != 3 {
        created_by(writer);
    }
    writer.list(7, STRUCT, 1);
    writer.raw(if kind == 5 { &[0x2c, 0, 0] } else { &[0x1c, 0, 0] });
    match kind {
        6 => {
            writer.begin(8);
            writer.begin(1);
            writer.binary(2, b"unique");
            writer.stop();
            writer.stop();
            writer.binary(9, b"signing");
        }
        // The number of rows a second time, with another value.
        7 => writer.i64(3, 5),
        _ => {}
    }
    writer.stop();
    match kind {
        8 => writer.raw(b"trailing bytes"),
        9 => writer.raw(b"others"),
        _ => {}
    }
}

#[test]
fn files_that_end_alike_keep_their_own_trailing_fields() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    // Each kind after every other one and after itself; extra row groups move the trailing fields.
    for place in 0..400_u64 {
        let kind = if place % 4 < 2 { place / 4 % 10 } else { place / 40 } as usize;
        let mut writer = ThriftWriter::new();
        writer.i32(1, 1);
        schema(&mut writer, 1);
        with_trailing_fields(&mut writer, place % 3, kind);
        let mut bytes = writer.into_bytes();
        if place % 23 == 0 {
            bytes.pop();
        }
        let path = directory.path().join(format!("{place}.parquet"));
        std::fs::write(&path, file(&bytes)).unwrap();
        paths.push(path);
    }
    for options in [Options::new(), Options::new().threads(2), Options::new().row_groups(0..1)] {
        let alone: Vec<String> =
            paths.iter().map(|path| contents(&Footer::open_with(path, &options))).collect();
        assert!(
            alone.iter().any(|contents| contents.contains("unique") || contents.contains("[117, 110")),
            "{}",
            alone[24]
        );
        let together = Mutex::new(vec![String::new(); paths.len()]);
        Footer::open_many(&paths, &options, |place, footer| {
            together.lock().unwrap()[place] = contents(&footer);
            ControlFlow::Continue(())
        });
        assert_eq!(together.into_inner().unwrap(), alone);
        let mut decoder = Decoder::new(options.clone());
        let one_by_one: Vec<String> = paths.iter().map(|path| contents(&decoder.open(path))).collect();
        assert_eq!(one_by_one, alone);
    }
}

#[test]
fn files_of_several_directories_open_however_their_paths_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    std::fs::create_dir(place("inner")).unwrap();
    let bytes = |columns| {
        file(&SyntheticFooter { columns, row_groups: 1, kind: SyntheticColumns::Float, seed: 1 }.bytes())
    };
    for (columns, name) in ["a", "b", "c", "inner/a", "inner/b", "inner/c"].into_iter().enumerate() {
        std::fs::write(place(name), bytes(columns + 1)).unwrap();
    }
    let names = [
        "a",
        "b",
        "c",
        "inner/a",
        "inner/b",
        "inner/c",
        "inner/../a",
        "inner/../b",
        "inner/../../x",
        "./a",
        "./b",
        ".//c",
        "inner/",
        "inner/.",
        "inner/..",
        "a/",
        "b/",
        "a",
        "none",
        "b",
        "nul\0",
        "c",
        "none/a",
        "none/b",
    ];
    let paths: Vec<PathBuf> = names.iter().map(|name| place(name)).collect();
    let alone: Vec<String> = paths.iter().map(|path| contents(&Footer::open(path))).collect();
    let together = Mutex::new(vec![String::new(); paths.len()]);
    Footer::open_many(&paths, &Options::new(), |place, footer| {
        together.lock().unwrap()[place] = contents(&footer);
        ControlFlow::Continue(())
    });
    assert_eq!(together.into_inner().unwrap(), alone);
}

/// Of each file about as many bytes are read as the footer before it had.
#[test]
fn hundreds_of_files_of_any_length_decode_as_if_opened_alone() {
    let directory = tempfile::tempdir().unwrap();
    let metadata =
        |columns| SyntheticFooter { columns, row_groups: 1, kind: SyntheticColumns::Float, seed: 1 }.bytes();
    let (usual, wide) = (metadata(5), metadata(60));
    let mut paths: Vec<PathBuf> = Vec::new();
    for at in 0..600 {
        let path = directory.path().join(format!("{at:03}.parquet"));
        // Data before the footer: of one length, of similar lengths, and of any length.
        let data = match at / 200 {
            0 => 5000,
            1 => 5000 + at * 37 % 90,
            _ => at * 7919 % 30_000,
        };
        let metadata = if at % 50 == 49 { &wide } else { &usual };
        let mut bytes = vec![7; data];
        bytes.extend_from_slice(&file(metadata));
        match at % 61 {
            3 => bytes.truncate(data + 9),
            5 => bytes.clear(),
            7 => bytes.extend_from_slice(&[0; 3000]),
            9 => std::fs::create_dir(&path).unwrap(),
            11 => std::fs::create_dir(directory.path().join(format!("{at}"))).unwrap(),
            _ => {}
        }
        match at % 61 {
            9 => {}
            11 => {
                paths.push(directory.path().join(format!("{at}/../{at:03}.parquet")));
                std::fs::write(&path, bytes).unwrap();
                continue;
            }
            13 => {
                paths.push(PathBuf::from("nowhere.parquet"));
                continue;
            }
            17 => {
                paths.push(directory.path().join("a\0zero"));
                continue;
            }
            _ => std::fs::write(&path, bytes).unwrap(),
        }
        paths.push(path);
    }
    let alone: Vec<String> = paths.iter().map(|path| contents(&Footer::open(path))).collect();
    assert!(alone.iter().filter(|contents| contents.starts_with("Footer")).count() > 500);
    for options in [Options::new(), Options::new().threads(3), Options::new().tail_hint(100)] {
        let together = Mutex::new(vec![String::new(); paths.len()]);
        let kept = Mutex::new(Vec::new());
        Footer::open_many(&paths, &options, |place, footer| {
            together.lock().unwrap()[place] = contents(&footer);
            if place % 5 == 0 {
                kept.lock().unwrap().push((place, footer));
            }
            ControlFlow::Continue(())
        });
        for (place, footer) in kept.into_inner().unwrap() {
            assert_eq!(contents(&footer), alone[place]);
        }
        assert_eq!(together.into_inner().unwrap(), alone);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_among_hundreds_of_files_is_rejected_without_blocking() {
    let directory = tempfile::tempdir().unwrap();
    let bytes =
        file(&SyntheticFooter { columns: 4, row_groups: 1, kind: SyntheticColumns::Text, seed: 2 }.bytes());
    let paths: Vec<PathBuf> = (0..300).map(|at| directory.path().join(format!("{at}.parquet"))).collect();
    for (at, path) in paths.iter().enumerate() {
        if at % 100 == 50 {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
        } else {
            std::fs::write(path, &bytes).unwrap();
        }
    }
    let refused = Mutex::new(Vec::new());
    Footer::open_many(&paths, &Options::new(), |place, footer| {
        if let Err(error) = footer {
            refused.lock().unwrap().push((place, error.to_string()));
        }
        ControlFlow::Continue(())
    });
    let refused = refused.into_inner().unwrap();
    assert_eq!(refused.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [50, 150, 250]);
    assert!(refused.iter().all(|(_, error)| error.contains("found a pipe")), "{refused:?}");
}
