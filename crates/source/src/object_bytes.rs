//! Objects of stores as footers read them.

use std::io;

use sawmill_footer::RangeReader;
use sawmill_store::{ObjectReader, PlannedReader};

/// The bytes of an object.
#[derive(Debug)]
pub struct ObjectBytes(pub ObjectReader);

impl RangeReader for ObjectBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.object().size())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

/// The bytes of an object that are read by a plan.
pub(crate) struct PlannedBytes(pub PlannedReader);

impl RangeReader for PlannedBytes {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.object().size())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}
