//! Zonky's archives: a JAR, which is a zip file, that contains a compressed tar file.

use std::io::{self, BufReader, Cursor};
use std::path::Path;

use lzma_rust2::XzReader;
use zip::ZipArchive;

/// Memory in KiB that decompression may take. The archives need 64 MiB for their dictionary.
const MEMORY: u32 = 256 << 10;

/// Extracts the files of an archive to the folder `to`, which it creates.
pub(super) fn extract(jar: &[u8], to: &Path) -> io::Result<()> {
    let mut jar = ZipArchive::new(Cursor::new(jar))?;
    let mut inner = None;
    for index in 0..jar.len() {
        if jar.by_index(index)?.name()?.ends_with(".txz") {
            inner = Some(index);
            break;
        }
    }
    let inner = inner.ok_or_else(|| io::Error::other("the archive contains no .txz file"))?;
    let compressed = BufReader::new(jar.by_index(inner)?);
    let mut files = tar::Archive::new(XzReader::new_mem_limit(compressed, false, MEMORY));
    files.set_preserve_mtime(false);
    files.unpack(to)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use lzma_rust2::{XzOptions, XzWriter};
    use zip::write::{SimpleFileOptions, ZipWriter};

    use super::*;

    fn jar(name: &str, tar: &[u8]) -> Vec<u8> {
        let mut xz = XzWriter::new(Vec::new(), XzOptions::with_preset(1)).unwrap();
        xz.write_all(tar).unwrap();
        let mut jar = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in
            [("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n".to_vec()), (name, xz.finish().unwrap())]
        {
            jar.start_file(name, SimpleFileOptions::default()).unwrap();
            jar.write_all(&bytes).unwrap();
        }
        jar.finish().unwrap().into_inner()
    }

    fn entry(kind: tar::EntryType, mode: u32, size: usize) -> tar::Header {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(size as u64);
        header
    }

    #[test]
    fn programs_links_and_modes_are_those_of_the_archive() {
        let mut tar = tar::Builder::new(Vec::new());
        let program = entry(tar::EntryType::Regular, 0o755, 7);
        tar.append_data(&mut program.clone(), "bin/postgres", &b"program"[..]).unwrap();
        let mut link = entry(tar::EntryType::Symlink, 0o777, 0);
        tar.append_link(&mut link, "lib/libpq.so.5", "libpq.so.5.18").unwrap();
        let mut hard_link = entry(tar::EntryType::Link, 0o755, 0);
        tar.append_link(&mut hard_link, "bin/postmaster", "bin/postgres").unwrap();
        let jar = jar("postgres-linux-x86_64.txz", &tar.into_inner().unwrap());

        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("extracted");
        extract(&jar, &to).unwrap();
        assert_eq!(fs::read(to.join("bin/postmaster")).unwrap(), b"program");
        let mode = fs::metadata(to.join("bin/postgres")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        assert_eq!(fs::read_link(to.join("lib/libpq.so.5")).unwrap(), Path::new("libpq.so.5.18"));
    }

    #[test]
    fn a_file_of_the_archive_cannot_leave_the_folder() {
        let mut header = entry(tar::EntryType::Regular, 0o644, 1);
        header.as_gnu_mut().unwrap().name[..9].copy_from_slice(b"../escape");
        header.set_cksum();
        let mut tar = tar::Builder::new(Vec::new());
        tar.append(&header, &b"x"[..]).unwrap();
        let place = tempfile::tempdir().unwrap();
        // The entry is skipped.
        extract(&jar("a.txz", &tar.into_inner().unwrap()), &place.path().join("extracted")).unwrap();
        assert!(!place.path().join("escape").exists());
    }

    #[test]
    fn what_is_not_such_an_archive_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("extracted");
        let error = extract(&jar("readme.txt", b""), &to).unwrap_err();
        assert_eq!(error.to_string(), "the archive contains no .txz file");
        assert!(extract(b"not a zip file", &to).is_err());
        let whole = jar("a.txz", &[0; 4096]);
        assert!(extract(&whole[..whole.len() / 2], &to).is_err());
    }
}
