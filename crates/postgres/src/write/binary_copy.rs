//! A COPY in binary format, and the blocks that go into it.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::SinkExt;
use sawmill_loader::{Block, Parcel, Parcels, Tally};
use sawmill_pgcopy::{HEADER, TRAILER};
use sawmill_pgwire::{Connection, WireError};
use sawmill_profile::{WaitKind, wait};
use sawmill_source::{Error, Kind, Result};
use tokio_postgres::{CopyInSink, Statement};

/// A COPY under way. If it is dropped before its end, the server fails it.
pub(crate) struct BinaryCopy(Pin<Box<CopyInSink<Bytes>>>);

impl BinaryCopy {
    /// Starts the COPY.
    pub(crate) async fn begin(connection: &Connection, copy: &Statement) -> Result<Self, WireError> {
        let mut sink = Box::pin(connection.client.copy_in::<_, Bytes>(copy).await?);
        connection.send_rows(&mut sink, Bytes::from_static(HEADER)).await?;
        Ok(Self(sink))
    }

    /// Sends encoded rows.
    pub(crate) async fn send(&mut self, connection: &Connection, rows: Bytes) -> Result<(), WireError> {
        connection.send_rows(&mut self.0, rows).await
    }

    /// Ends the COPY. The server must have stored `rows` rows, those at `place`.
    pub(crate) async fn finish(
        &mut self,
        rows: u64,
        place: impl FnOnce() -> String,
    ) -> Result<(), WireError> {
        self.0.feed(Bytes::copy_from_slice(&TRAILER)).await?;
        match self.0.as_mut().finish().await? {
            copied if copied == rows => Ok(()),
            copied => Err(Error::new(Kind::Mismatch, format!("the server copied {copied} of {rows} rows"))
                .at(place())
                .advise("a trigger or rule of the table may drop rows")
                .into()),
        }
    }
}

/// The next event of a unit.
pub(crate) enum Next {
    Rows(Block),
    /// The unit is complete, and this is its sum.
    End(Tally),
}

/// Waits for the next block of a unit or its end. `None` if the channel closed before that.
pub(crate) async fn next(parcels: &mut Parcels) -> Result<Option<Next>, WireError> {
    let _empty = wait(WaitKind::ChannelEmpty);
    match parcels.recv().await {
        Some(Parcel::Rows(block)) => Ok(Some(Next::Rows(block))),
        Some(Parcel::End(tally)) => Ok(Some(Next::End(tally))),
        Some(Parcel::Failed(error)) => Err(WireError::Own(error)),
        Some(Parcel::Unit(_)) => {
            Err(Error::new(Kind::Source, "a unit began before the last one ended").into())
        }
        None => Ok(None),
    }
}

/// Drops the rest of a unit whose rows are not needed.
pub(crate) async fn drain(parcels: &mut Parcels) -> Result<(), WireError> {
    while let Some(Next::Rows(_)) = next(parcels).await? {}
    Ok(())
}
