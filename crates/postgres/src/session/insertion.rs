//! Rows of one statement into one table: all of them, or none.

use std::sync::Arc;

use arrow_schema::Schema;
use bytes::Bytes;
use sawmill_loader::TableName;
use sawmill_pgcopy::Column;
use sawmill_pgwire::Connection;
use sawmill_source::{Control, Error, Kind, Result};

use crate::table::catalogue::{self, Link};
use crate::table::columns;
use crate::table::planned_columns::PlannedColumns;
use crate::target::Postgres;
use crate::types::sent_as_text::copy_into;
use crate::write::binary_copy::BinaryCopy;

/// A COPY in a transaction. Dropped before [`commit`](Self::commit), it leaves nothing behind.
pub struct Insertion {
    // Dropped before the connection that it belongs to.
    copy: BinaryCopy,
    connection: Connection,
    columns: Arc<Vec<Column>>,
    table: TableName,
    /// The columns of a table that was there before.
    planned: Option<PlannedColumns>,
    sent: u64,
}

impl Postgres {
    /// Begins the insertion of rows of this schema: in mode create into a new table, which is there when the rows
    /// are, else into the columns of the table that have the names of the fields. Opens a connection for it.
    ///
    /// # Errors
    /// In mode create a table of this name, else none; fields that fit into no column or into one that the
    /// server fills itself, all in one error; no connection or no permission.
    pub fn insert(&self, schema: &Schema, control: &Control<'_>) -> Result<Insertion> {
        let in_statement =
            |error: Error| error.advise("rename, cast or leave out columns in the SELECT of the statement");
        let new = if self.mode.makes_the_table() {
            let new = columns::natural(schema, &self.table, self.nested, &self.values);
            Some(new.map_err(in_statement)?)
        } else {
            None
        };
        let connection = Connection::open(&self.server, control)?;
        let link = Link::new(&connection, control);
        link.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        let mut planned = None;
        let columns = match new {
            Some(new) => {
                self.check_name_is_free(link)?;
                link.batch(&self.kind.create(&self.table, &new, schema, None))?;
                new.columns
            }
            None => {
                let found = self.find(link)?;
                let (table, names) = (self.table.within(&found.schema), schema.fields().iter());
                let names = names.map(|field| field.name().as_str());
                planned = PlannedColumns::read(link, &table, found.oid, names).map(Some)?;
                let existing = columns::read(link, found.oid)?;
                columns::refuse_numbered(schema, &existing, &self.table).map_err(in_statement)?;
                columns::matched(schema, &existing, &self.table, &self.values).map_err(in_statement)?
            }
        };
        let (copy, before) = copy_into(&self.table, &columns);
        before.map_or(Ok(()), |made| link.batch(&made))?;
        let copy = link.prepare(&copy)?;
        let copy = connection.wait_for(control, BinaryCopy::begin(&connection, &copy))?;
        Ok(Insertion { copy, connection, columns, table: self.table.clone(), planned, sent: 0 })
    }

    fn check_name_is_free(&self, link: Link<'_>) -> Result<()> {
        match catalogue::find(link, &self.table)? {
            None => Ok(()),
            Some(_) => Err(Error::new(Kind::Schema, "there is a table, view or index of this name")
                .at(format!("table {}, {}", self.table, link.place()))
                .advise("choose another name, or insert into it")),
        }
    }
}

impl Insertion {
    /// The columns that the rows have to be encoded for, in this order.
    pub fn columns(&self) -> &Arc<Vec<Column>> {
        &self.columns
    }

    /// Sends a block of `rows` encoded rows.
    ///
    /// # Errors
    /// The server refuses rows that were sent earlier, or the connection is lost: nothing is inserted.
    pub fn send(&mut self, block: Bytes, rows: u64, control: &Control<'_>) -> Result<()> {
        let Self { copy, connection, .. } = self;
        connection.wait_for(control, copy.send(connection, block)).map_err(nothing_inserted)?;
        self.sent += rows;
        Ok(())
    }

    /// Ends the statement, and returns the number of rows that the server has stored.
    ///
    /// # Errors
    /// The server refuses a row, stores another number of rows than were sent, or the connection is lost. If it is
    /// lost while the server commits, the error says so; otherwise nothing is inserted.
    pub fn commit(mut self, control: &Control<'_>) -> Result<u64> {
        let place = || format!("table {}, {}", self.table, self.connection.place());
        let finished = self.connection.wait_for(control, self.copy.finish(self.sent, place));
        finished.map_err(nothing_inserted)?;
        // COPY holds a lock on the table by now.
        if let Some(planned) = &self.planned
            && let Some(changed) = planned.change(Link::new(&self.connection, control))?
        {
            return Err(changed.advise("run the statement again: no row of it is in the table"));
        }
        self.connection.commit(control).map_err(|error| match error.kind() {
            Kind::Connection => {
                let what = format!("the connection was lost while the rows were committed: {}", error.what());
                Error::new(Kind::Connection, what)
                    .at(place())
                    .advise("count the rows of the table before you run the statement again")
            }
            _ => error,
        })?;
        Ok(self.sent)
    }
}

/// The error of a COPY that the server has not taken: its transaction ends without it.
fn nothing_inserted(error: Error) -> Error {
    match error.kind() {
        Kind::Server | Kind::Connection | Kind::Mismatch => error.advise(
            "no row of the statement is in the table: correct the query or the table, or run the statement again",
        ),
        _ => error,
    }
}
