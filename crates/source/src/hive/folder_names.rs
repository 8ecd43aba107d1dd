//! The columns that the folders of a path name.

use std::path::{Component, Path};

use sawmill_profile::{Error, Kind, Result};

/// The name of null in a folder's name.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// A folder `column=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderName {
    pub column: String,
    pub value: Option<String>,
}

/// Returns the folders `column=value` of a file's path, as given by the caller.
///
/// # Errors
/// Two folders of one column; a name that is not UTF-8.
pub(crate) fn folder_names(file: &Path) -> Result<Vec<FolderName>> {
    let refused = |what: String| {
        Error::new(Kind::Schema, what)
            .at(file.display().to_string())
            .advise("rename the folder, or ignore folders with --hive no")
    };
    let mut names: Vec<FolderName> = Vec::new();
    for folder in file.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(folder) = folder else { continue };
        let bytes = folder.as_encoded_bytes();
        let Some(equals) = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0) else { continue };
        let decoded = |part| String::from_utf8(percent_decoded(part));
        let (Ok(column), Ok(value)) = (decoded(&bytes[..equals]), decoded(&bytes[equals + 1..])) else {
            return Err(refused(format!("the folder {} is not UTF-8", folder.display())));
        };
        if names.iter().any(|other| other.column == column) {
            return Err(refused(format!("two folders name column {column:?}")));
        }
        names.push(FolderName { column, value: (value != NULL).then_some(value) });
    }
    Ok(names)
}

/// Returns the values of the folders of a file's path, as a part of the file's identity. Empty if the
/// canonical path names the same folders, as it does unless the path leads through links.
pub(crate) fn values_of_links(names: &[FolderName], own_path: &Path) -> String {
    match names.is_empty() || folder_names(own_path).is_ok_and(|own| own == names) {
        true => String::new(),
        false => format!(" in {names:?}"),
    }
}

/// Decodes `%20` and the like. A `%` without two hexadecimal digits is unchanged.
fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match digit(at + 1).zip(digit(at + 2)) {
            Some((high, low)) if *byte == b'%' => {
                // Two hexadecimal digits are at most 255.
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str) -> Vec<(String, Option<String>)> {
        let names = folder_names(Path::new(path)).unwrap();
        names.into_iter().map(|folder| (folder.column, folder.value)).collect()
    }

    #[test]
    fn folders_name_columns_and_files_do_not() {
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(names("/data/year=2020/m=01/a=b.parquet"), [pair("year", "2020"), pair("m", "01")]);
        assert_eq!(names("./k=/x.parquet"), [pair("k", "")]);
        assert_eq!(names("e=a=b/=c/x.parquet"), [pair("e", "a=b")]);
        assert_eq!(names("c=__HIVE_DEFAULT_PARTITION__/x.parquet"), [("c".to_owned(), None)]);
        assert_eq!(names("x.parquet"), []);
    }

    #[test]
    fn percent_escapes_are_decoded_and_other_percent_signs_stay() {
        let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(names("my%20key=a%2Fb%3D%C3%A4/x"), [pair("my key", "a/b=ä")]);
        assert_eq!(
            names("p=100%/q=%zz%4/r=a+b/x"),
            [pair("p", "100%"), pair("q", "%zz%4"), pair("r", "a+b")]
        );
        assert!(folder_names(Path::new("k=%ff/x")).is_err());
    }

    #[test]
    fn a_column_is_named_once() {
        let error = folder_names(Path::new("k=1/k=2/x.parquet")).unwrap_err().to_string();
        assert!(error.contains("two folders name column \"k\""), "{error}");
    }
}
