//! When a field is null: by chance, by a condition, or together with others.

use crate::draw::choice::bad_weights;
use crate::draw::expression::{Expression, OperandRow};
use crate::draw::nulls::Nulls;
use crate::error::Result;
use crate::random::weights::Weights;
use crate::spec::dataset::Present;
use crate::spec::reader::Reader;
use crate::spec::reader::leaves::check_formula;
use crate::spec_file::toml_reader::{SpecNode, SpecTable};
use crate::types::logical_type::LogicalType;

impl Reader<'_> {
    /// Reads when the field in `table` is null, and the condition for it if there is one.
    pub(super) fn nulls(
        &mut self,
        table: SpecTable<'_>,
        together: Option<usize>,
    ) -> Result<(Nulls, Option<Box<Expression>>)> {
        let given = table.get("nulls").filter(|node| node.is_table());
        let given = given.map(|node| node.any_table("`nulls`")).transpose()?;
        let Some(node) = given.and_then(|given| given.get("expression")) else {
            return Ok((nulls(table, together)?, None));
        };
        given.map_or(Ok(()), |given| given.check("`nulls`", &["expression"]))?;
        if together.is_some() || node.string().is_none() {
            let advice = "write a condition, for a field that no `present` names";
            return Err(node.wrong("nulls.expression", advice));
        }
        let resolve = &mut |name: &str| self.scope(table.path()).operand(name);
        let text = node.string().unwrap_or_default();
        let condition = Expression::parse(text, &LogicalType::Boolean, &[], resolve)
            .map_err(|complaint| node.complain(complaint))?;
        check_formula(&condition, node)?;
        if condition.operands.iter().any(|operand| operand.row != OperandRow::Own) {
            return Err(node.error("previous() in a condition of nulls", "use a hidden field for it"));
        }
        self.operands.extend(condition.operands.iter().map(|operand| operand.leaf));
        Ok((Nulls::Where, Some(Box::new(condition))))
    }
}

/// Reads how often the field in `table` is null, if no condition says it.
fn nulls(table: SpecTable<'_>, together: Option<usize>) -> Result<Nulls> {
    let Some(node) = table.get("nulls") else {
        return Ok(together.map_or(Nulls::Never, |bit| Nulls::Together(bit as u32)));
    };
    if together.is_some() {
        let what = "`nulls` on a field that the `present` of its struct names";
        return Err(node.error(what, "keep one of them"));
    }
    let wrong = || {
        let advice = "use 0.0 to 1.0, { weights = { null = 1, value = 9 } } or { expression = \"...\" }";
        node.unfit("`nulls = {}` is not a probability", advice)
    };
    if node.is_table() {
        let weights = node.table("`nulls`", &["weights", "expression"])?.need("weights", "`nulls`")?;
        let weights = weights.table("`nulls`", &["null", "value"])?;
        let weight = |key| {
            let number = weights.need(key, "`nulls`")?.number();
            number.filter(|w| (0.0..=f64::MAX).contains(w)).ok_or_else(wrong)
        };
        let (null, value) = (weight("null")?, weight("value")?);
        return if null + value > 0.0 { Ok(Nulls::Share(null / (null + value))) } else { Err(wrong()) };
    }
    node.number_in(0.0..=1.0).map(Nulls::Share).ok_or_else(wrong)
}

/// Reads which fields of `table` are present together, and returns the names of these fields with it.
pub(super) fn present(
    table: SpecTable<'_>,
    fields: SpecNode<'_>,
) -> Result<(Option<Vec<String>>, Option<Present>)> {
    let Some(node) = table.get("present") else { return Ok((None, None)) };
    let wrong = |node: SpecNode<'_>| {
        node.unfit("`present` contains {}", "write a list of { fields = [...], weight = ... }")
    };
    let mut combinations: Vec<(Vec<String>, f64)> = Vec::new();
    for combination in node.array().ok_or_else(|| wrong(node))? {
        let table = combination.table("a combination of `present`", &["fields", "weight"])?;
        let names = table.need("fields", "a combination of `present`")?;
        let mut all = Vec::new();
        for name in names.array().ok_or_else(|| wrong(names))? {
            let text = name.string().ok_or_else(|| wrong(name))?;
            let known = fields.array().into_iter().flatten().any(|field| {
                let table = field.any_table("a field").ok();
                table.and_then(|t| t.get("name")).and_then(|n| n.string()) == Some(text)
            });
            if !known {
                let what = format!("no field is named {text:?}");
                return Err(name.error(what, "use names of fields of this struct"));
            }
            all.push(text.to_owned());
        }
        let weight = table.need("weight", "a combination of `present`")?;
        combinations.push((all, weight.number().ok_or_else(|| wrong(weight))?));
    }
    let mut names: Vec<String> = combinations.iter().flat_map(|(names, _)| names.iter().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > 32 {
        return Err(node.error("`present` names more than 32 fields", "name fewer fields"));
    }
    let bit = |name: &String| names.iter().position(|n| n == name).map_or(0, |i| 1u32 << i);
    let masks = combinations.iter().map(|(n, _)| n.iter().map(bit).fold(0, |a, b| a | b)).collect();
    let weights: Vec<f64> = combinations.iter().map(|(_, w)| *w).collect();
    let table = Weights::new(&weights).map_err(|bad| bad_weights(&bad, node))?;
    Ok((Some(names), Some(Present { table, masks })))
}
