//! Which fields of a record must be read for the values of one of them: the column of another table, or a key, which
//! may be defined later, such as the manager of an employee.

use crate::spec_file::toml_reader::{SpecNode, SpecTable};

/// The fields of a record that are read.
#[derive(Clone, Copy)]
pub(crate) enum Only<'a> {
    All,
    /// The fields of these names: another table's values depend on them.
    Values(&'a [String]),
    /// The field with a key, which depends on no other field.
    Key(&'a str),
}

impl Only<'_> {
    pub(crate) fn reads(self, name: &str) -> bool {
        match self {
            Only::All => true,
            Only::Values(names) => names.iter().any(|other| other == name),
            Only::Key(path) => is_in(path, name),
        }
    }
}

/// Whether the column `path` is the field `name` of the record, or in it.
fn is_in(path: &str, name: &str) -> bool {
    path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The fields of a table's record, with their names.
fn fields(table: SpecTable<'_>) -> Vec<(&str, SpecNode<'_>)> {
    let nodes = table.get("fields").and_then(SpecNode::array).into_iter().flatten();
    let named =
        nodes.filter_map(|node| Some((node.any_table("", "a field").ok()?.get("name")?.string()?, node)));
    named.collect()
}

/// The names of the fields of a table that has none for `column`.
pub(crate) fn others(table: SpecTable<'_>, column: &str) -> Option<Vec<String>> {
    let names: Vec<String> = fields(table).iter().map(|(name, _)| (*name).to_owned()).collect();
    names.iter().all(|name| !is_in(column, name)).then_some(names)
}

/// The names of the fields on which the values of `column` may depend, itself among them: those that it mentions,
/// directly or through others, and those of a copula. `None` if no field has the name, or other tables have it.
pub(crate) fn needed(table: SpecTable<'_>, column: &str) -> Option<Vec<String>> {
    let mut fields = fields(table);
    fields.iter().find(|(name, _)| is_in(column, name))?;
    let copula = table.get("copula");
    let mut needed: Vec<String> = Vec::new();
    // A field depends on earlier ones alone.
    while let Some((name, node)) = fields.pop() {
        let mut is_needed = is_in(column, name) || needed.iter().any(|other| other == name);
        copula.into_iter().for_each(|copula| copula.each_text(&mut |text| is_needed |= mentions(text, name)));
        if is_needed {
            node.each_text(&mut |text| {
                let earlier = fields.iter().map(|(earlier, _)| *earlier);
                needed.extend(earlier.filter(|earlier| mentions(text, earlier)).map(str::to_owned));
            });
            needed.push(name.to_owned());
        }
    }
    Some(needed)
}

/// Whether a text of a spec, such as a formula, has the name of a field.
fn mentions(text: &str, name: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    text == name || words.any(|word| word == name) || text.contains(&format!("`{name}"))
}

#[cfg(test)]
mod tests {
    use toml::de::DeTable;

    use super::*;

    #[test]
    fn fields_that_a_formula_names_are_needed_with_theirs() {
        let spec = "fields = [{ name = 'a' }, { name = 'b c', values.expression = 'a + 1' }, { name = 'd' }, \
                    { name = 'e', fields = [{ name = 'f', values.expression = '`b c` * 2' }] }]";
        let parsed = DeTable::parse(spec).unwrap();
        let root = SpecTable::root(parsed.get_ref(), spec);
        assert_eq!(needed(root, "e.f").unwrap(), ["b c", "e", "a", "b c", "a"]);
        assert_eq!(needed(root, "d").unwrap(), ["d"]);
        assert_eq!(needed(root, "g"), None);
    }
}
