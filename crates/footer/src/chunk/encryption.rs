//! How a file with a plaintext footer is encrypted.

use crate::thrift::cursor::{BINARY, Cursor, FALSE, STRUCT, Step, TRUE, each_field};

/// The algorithm that a file's columns are encrypted with (`EncryptionAlgorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EncryptionAlgorithm<'a> {
    /// AES-GCM for everything.
    AesGcmV1(AesParameters<'a>),
    /// AES-GCM for metadata, AES-CTR for pages.
    AesGcmCtrV1(AesParameters<'a>),
    /// An algorithm unknown to this version: the union's field id, 0 for an empty union.
    Unknown(i16),
}

/// The parameters of either algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AesParameters<'a> {
    /// The prefix of the additional authenticated data.
    pub aad_prefix: Option<&'a [u8]>,
    /// The file-specific part of the additional authenticated data.
    pub aad_file_unique: Option<&'a [u8]>,
    /// Whether readers must supply the prefix.
    pub supply_aad_prefix: Option<bool>,
}

pub(crate) fn algorithm<'a>(cursor: &mut Cursor<'a>) -> Step<EncryptionAlgorithm<'a>> {
    let (mut found, mut last) = (EncryptionAlgorithm::Unknown(0), 0);
    while let Some(field) = cursor.next_field(&mut last)? {
        found = match (field.id, field.wire) {
            (1, STRUCT) => EncryptionAlgorithm::AesGcmV1(parameters(cursor)?),
            (2, STRUCT) => EncryptionAlgorithm::AesGcmCtrV1(parameters(cursor)?),
            (id, wire) => {
                cursor.skip(wire)?;
                EncryptionAlgorithm::Unknown(id)
            }
        };
    }
    Ok(found)
}

fn parameters<'a>(cursor: &mut Cursor<'a>) -> Step<AesParameters<'a>> {
    let mut found = AesParameters::default();
    each_field!(cursor, {
        (1, BINARY) => found.aad_prefix = Some(cursor.binary()?),
        (2, BINARY) => found.aad_file_unique = Some(cursor.binary()?),
        (3, wire @ (TRUE | FALSE)) => found.supply_aad_prefix = Some(wire == TRUE),
    });
    Ok(found)
}
