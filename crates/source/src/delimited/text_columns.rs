//! Columns that are read as text because the target stores them as text.

use super::columns::column_type::ColumnType;
use super::columns::formats::Moment;
use super::files::Columns;
use super::json::JsonType;

/// The columns that the target stores as text. They are read as written: the type that a sample gives would store
/// `1.50` as `1.5`. They are not part of a load's identity: the table that a load creates has text columns afterwards,
/// and must not make the same command another load. In JSON, objects and lists are not read as text.
#[derive(Clone, Debug, Default)]
pub struct TextColumns {
    /// Their names in the files.
    pub names: Vec<String>,
    /// Their places among the columns of the files.
    pub places: Vec<usize>,
    /// Whether times of day keep their type: the target itself stores them as text.
    pub but_times: bool,
    /// Whether days with a time of day keep their type.
    pub but_timestamps: bool,
    /// The types of columns without a value in the sample, by their names in the files; otherwise they are text.
    pub of_empty: Vec<(String, ColumnType)>,
}

impl TextColumns {
    /// Makes these columns text, except for those with a `given` type, and gives `empty` ones their types. Returns the
    /// places of the columns that become text.
    pub(super) fn apply(
        &self,
        columns: &mut Columns,
        names: &[String],
        given: &[(String, ColumnType)],
        is_empty: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut changed = Vec::new();
        // Returns whether the table says the type.
        let mut change = |at: usize, name: &String, of: &mut ColumnType| {
            let is_named = self.names.contains(name) || self.places.contains(&at);
            let is_given = given.iter().any(|(given, _)| given == name);
            let typed = self.of_empty.iter().find(|(typed, _)| typed == name);
            let typed = typed.filter(|_| !is_given && is_empty(at));
            if let Some((_, typed)) = typed {
                *of = *typed;
            }
            let is_text = is_named && !is_given;
            if is_text && !self.keep(*of) {
                *of = ColumnType::Text;
                changed.push(at);
            }
            typed.is_some() || is_text && *of == ColumnType::Text
        };
        match columns {
            Columns::Delimited(types) => {
                for (at, (typing, name)) in types.iter_mut().zip(names).enumerate() {
                    typing.inferred &= !change(at, name, &mut typing.of);
                }
            }
            Columns::Json(columns) => {
                for (at, column) in columns.iter_mut().enumerate() {
                    if let JsonType::Scalar(of, kind) = &mut column.of
                        && change(at, &column.name, of)
                    {
                        *kind = None;
                    }
                }
            }
        }
        changed
    }

    fn keep(&self, of: ColumnType) -> bool {
        match of {
            ColumnType::Text | ColumnType::Json => true,
            ColumnType::Time | ColumnType::Pattern(Moment::Time, ..) => self.but_times,
            ColumnType::Timestamp(_)
            | ColumnType::TimestampUtc(_)
            | ColumnType::Pattern(Moment::Local | Moment::Utc, ..) => self.but_timestamps,
            _ => false,
        }
    }
}
