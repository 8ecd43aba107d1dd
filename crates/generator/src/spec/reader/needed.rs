//! Which fields of a record are read for the values of one of them: the column of another table, or a key, which may
//! be defined later, such as the manager of an employee.
//!
//! A field is read after the earlier fields that its formulas, conditions and references name. Only parsing shows these
//! names: a field that names an unread one is read again after that one.

use crate::draw::copula::reader::members;
use crate::error::Result;
use crate::spec::dataset::Field;
use crate::spec::reader::Reader;
use crate::spec::reader::fields::Named;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};

/// The fields of a record that are read.
#[derive(Clone, Copy)]
pub(crate) enum Only<'a> {
    All,
    /// The field with a column of another table, and the fields on which its values depend.
    Column(&'a str),
    /// The field with a key; it does not depend on other fields.
    Key(&'a str),
}

impl Only<'_> {
    /// Whether the field `name` of the record is read, whatever names it.
    pub(crate) fn reads(self, name: &str) -> bool {
        match self {
            Only::All => true,
            Only::Column(path) | Only::Key(path) => is_in(path, name),
        }
    }
}

/// Whether the column `path` is the field `name` of the record, or in it.
fn is_in(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The names of a table's fields, if `column` is not one of their columns.
pub(crate) fn others(table: SpecTable<'_>, column: &str) -> Option<Vec<String>> {
    let nodes = table.get("fields").and_then(SpecNode::array).into_iter().flatten();
    let name = |node: SpecNode<'_>| node.any_table("a field").ok()?.get("name")?.string().map(str::to_owned);
    let names: Vec<String> = nodes.filter_map(name).collect();
    names.iter().all(|name| !is_in(column, name)).then_some(names)
}

impl Reader<'_> {
    /// Reads the fields on which the values of `column` depend, and the copula if one of them follows it.
    pub(super) fn column(
        &mut self,
        column: &str,
        all: &[Named<'_>],
        together: Option<&[String]>,
        fields: &mut Vec<Field>,
    ) -> Result<()> {
        let mut read = vec![false; all.len()];
        let own = (0..all.len()).filter(|place| is_in(column, all[*place].name)).collect();
        self.with_operands(own, all, together, (&mut read[..], &mut *fields))?;
        let (members, has_present) = members(self.root);
        let is_member = |name: &str| members.iter().any(|member| is_in(member, name));
        let is_together = |name: &str| together.is_some_and(|names| names.iter().any(|other| other == name));
        let mut names = all.iter().zip(&read).filter(|(_, is_read)| **is_read).map(|(field, _)| field.name);
        if names.any(|name| is_member(name) || has_present && is_together(name)) {
            let members = (0..all.len()).filter(|place| is_member(all[*place].name)).collect();
            self.with_operands(members, all, together, (&mut read[..], &mut *fields))?;
            self.follows_copula = true;
        }
        Ok(())
    }

    /// Reads the fields at the places `open`, each after those that it depends on.
    fn with_operands(
        &mut self,
        mut open: Vec<usize>,
        all: &[Named<'_>],
        together: Option<&[String]>,
        (read, fields): (&mut [bool], &mut Vec<Field>),
    ) -> Result<()> {
        while let Some(place) = open.pop() {
            if read[place] {
                continue;
            }
            let before = (self.leaves.len(), self.columns, self.lists, self.operands.len());
            let there = (self.order.len(), fields.len(), self.whole_lists.len());
            self.missing.get_mut().clear();
            let tried = self.record_field(&all[place], together, fields);
            let missing = self.missing.take();
            let is_missing = |i: &usize| !read[*i] && missing.iter().any(|path| is_in(path, all[*i].name));
            let earlier: Vec<usize> = (0..place).filter(is_missing).collect();
            if earlier.is_empty() {
                tried?;
                read[place] = true;
                continue;
            }
            self.leaves.truncate(before.0);
            (self.columns, self.lists) = (before.1, before.2);
            self.operands.truncate(before.3);
            self.order.truncate(there.0);
            fields.truncate(there.1);
            self.whole_lists.truncate(there.2);
            open.push(place);
            open.extend(earlier);
        }
        Ok(())
    }
}
