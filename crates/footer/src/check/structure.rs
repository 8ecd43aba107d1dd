//! Checks the schema's elements, and structs for repeated fields.

use super::Check;
use crate::thrift::cursor::{Cursor, STOP};
use crate::thrift::format::{COLUMN_CHUNK, FILE_META_DATA, ROW_GROUP, StructDef};

impl Check<'_, '_> {
    pub(super) fn schema(&mut self) {
        for element in self.footer.schema().elements().skip(1) {
            let path = |field: &str| format!("schema[{}].{field}", element.index());
            let name = element.path();
            match element.repetition() {
                Some(repetition) if repetition.is_known() => {}
                found => {
                    let found = found.map_or("none".to_string(), |found| found.to_string());
                    let what = format!("expected a repetition of the format for `{name}`, found {found}");
                    self.tell(what, path("repetition_type"), None);
                }
            }
            if let Some(converted) = element.converted_type().filter(|converted| !converted.is_known()) {
                let what = format!("expected a converted type of the format for `{name}`, found {converted}");
                self.tell(what, path("converted_type"), None);
            }
        }
    }

    /// Reports fields that occur twice in the footer, in a row group or in a column chunk: some readers take
    /// the first, others the last.
    pub(super) fn repeated_fields(&mut self) {
        let footer = self.footer;
        self.repeated_in(0, &FILE_META_DATA, "");
        for group in footer.row_groups() {
            let path = format!("row_groups[{}]", group.index());
            self.repeated_in(group.footer_offset(), &ROW_GROUP, &path);
            for chunk in group.columns() {
                let path = || format!("{path}.columns[{}]", chunk.leaf());
                // Compute the path only if a struct has repeated fields: there may be millions of structs.
                if self.repeats(chunk.footer_offset()).next().is_some() {
                    self.repeated_in(chunk.footer_offset(), &COLUMN_CHUNK, &path());
                }
            }
        }
    }

    fn repeated_in(&mut self, start: usize, def: &'static StructDef, path: &str) {
        let repeated: Vec<(i16, usize)> = self.repeats(start).collect();
        for (id, at) in repeated {
            let name = def.field(id).map_or_else(|| format!("field {id}"), |field| field.name.to_string());
            let what = format!("expected the field `{name}` once, found it again");
            let path = if path.is_empty() { name } else { format!("{path}.{name}") };
            self.tell(what, path, Some(at as u64));
        }
    }

    /// The repeated fields of the struct at `start`, each with the offset of its repetition.
    fn repeats(&self, start: usize) -> impl Iterator<Item = (i16, usize)> + use<'_> {
        let mut cursor = Cursor::new(self.footer.bytes(), start);
        let (mut seen, mut last) = (Vec::new(), 0);
        std::iter::from_fn(move || {
            loop {
                // Decoding has already rejected structs that cannot be walked.
                let field = cursor.field(&mut last).ok().filter(|field| field.wire != STOP)?;
                let at = cursor.at;
                cursor.skip(field.wire).ok()?;
                if seen.contains(&field.id) {
                    return Some((field.id, at));
                }
                seen.push(field.id);
            }
        })
    }
}
