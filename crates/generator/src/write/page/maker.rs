//! What a thread needs to make pages: the plan of the file, a codec, and buffers for one page.

use crate::encode::compression::Compressor;
use crate::encode::physical::PhysicalRoom;
use crate::error::Error;
use crate::write::plan::FilePlan;

/// The plan of the file and the buffers of one thread.
#[derive(Debug)]
pub(crate) struct PageMaker<'a> {
    pub plan: &'a FilePlan<'a>,
    pub compressor: Compressor,
    /// The part of a body to compress.
    pub body: Vec<u8>,
    pub header: Vec<u8>,
    /// The statistics for a page header.
    pub statistics: Vec<u8>,
    pub indices: Vec<u32>,
    /// The number of times that each value of a dictionary appears in a page.
    pub counts: Vec<u64>,
    pub physical: PhysicalRoom,
    /// The rows of the current row group; 0 if unknown.
    pub group_rows: u64,
    /// The dictionary of all names, compressed; empty until a chunk needs it.
    pub names: Vec<u8>,
}

impl<'a> PageMaker<'a> {
    /// # Errors
    /// The codec cannot be set up.
    pub(crate) fn new(plan: &'a FilePlan<'a>) -> Result<Self, Error> {
        let compression = plan.options.compression;
        let compressor = Compressor::new(compression).map_err(|e| Error::page(&e, plan.dataset.name()))?;
        Ok(PageMaker {
            plan,
            compressor,
            body: Vec::new(),
            header: Vec::new(),
            statistics: Vec::new(),
            indices: Vec::new(),
            counts: Vec::new(),
            physical: PhysicalRoom::default(),
            group_rows: 0,
            names: Vec::new(),
        })
    }
}
