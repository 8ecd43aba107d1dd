//! The identifier of a load in the records.

use sawmill_source::SourceFile;

/// A load's identity: names of files, table and mode. Content is compared separately, so that a changed file
/// is noticed instead of becoming a different load.
pub fn load_id(files: &[SourceFile], mapping: &str, table: &str, mode: &str) -> String {
    id_of_names(files.iter().map(|file| file.name.as_str()), mapping, table, mode)
}

/// The identity by the names of the files alone.
pub fn id_of_names<'f>(
    files: impl Iterator<Item = &'f str>,
    mapping: &str,
    table: &str,
    mode: &str,
) -> String {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    add(table);
    add(mode);
    files.for_each(add);
    hash.update(mapping.as_bytes());
    format!("{:032x}", hash.digest128())
}
