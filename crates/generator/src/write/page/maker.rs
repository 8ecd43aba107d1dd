//! What a thread needs to make pages: the plan of the file, codecs, and buffers for one page.

use crate::encode::compression::{Compression, Compressor};
use crate::encode::physical::PhysicalRoom;
use crate::error::{Error, Result};
use crate::spec::dataset::Leaf;
use crate::write::plan::FilePlan;

/// The plan of the file and the buffers of one thread.
pub(crate) struct PageMaker<'a> {
    pub plan: &'a FilePlan<'a>,
    /// The codecs of the plan.
    pub codecs: Vec<PageCodec>,
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
}

/// A codec of some of the columns.
pub(crate) struct PageCodec {
    pub compressor: Compressor,
    /// The dictionary of all names, compressed; empty until a chunk needs it.
    pub names: Vec<u8>,
}

impl<'a> PageMaker<'a> {
    /// # Errors
    /// A codec cannot be set up.
    pub(crate) fn new(plan: &'a FilePlan<'a>) -> Result<Self> {
        let codec = |compression: &Compression| match Compressor::new(*compression) {
            Ok(compressor) => Ok(PageCodec { compressor, names: Vec::new() }),
            Err(error) => Err(Error::page(&error, plan.dataset.name())),
        };
        Ok(PageMaker {
            plan,
            codecs: plan.codecs.iter().map(codec).collect::<Result<_, _>>()?,
            body: Vec::new(),
            header: Vec::new(),
            statistics: Vec::new(),
            indices: Vec::new(),
            counts: Vec::new(),
            physical: PhysicalRoom::default(),
            group_rows: 0,
        })
    }

    pub(crate) fn codec(&mut self, leaf: &Leaf) -> &mut PageCodec {
        &mut self.codecs[self.plan.columns[leaf.index].codec]
    }
}
