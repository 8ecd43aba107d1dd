//! Formulas over earlier fields of the record.

use crate::draw::expression::{Expression, NamedDraw, OperandRow};
use crate::draw::quantiles::Quantiles;
use crate::draw::value_spec::ValueSpec;
use crate::draw::value_spec::other_rows::other_column::fan_out;
use crate::draw::value_spec::reader::Surroundings;
use crate::error::{Complaint, Result};
use crate::spec::value_length::SHORT_BYTES;
use crate::spec_file::toml_reader::SpecNode;
use crate::types::logical_type::LogicalType;
use crate::types::number::Number;

/// `expression`: a formula whose results can fit into the type.
pub(super) fn expression(parameters: SpecNode<'_>, around: &mut Surroundings<'_>) -> Result<ValueSpec> {
    let (kind, path) = (around.kind, around.path);
    let (node, draws) = if parameters.is_table() {
        let table = parameters.table("expression", &["formula", "draws"])?;
        let draws = table.get("draws").map_or(Ok(Vec::new()), |node| draws(node, kind))?;
        (table.need("formula", "expression")?, draws)
    } else {
        (parameters, Vec::new())
    };
    let Some(text) = node.string() else {
        let what = "an expression must be a string";
        return Err(node.error(what, "for example \"start + lognormal(3h, 0.5)\""));
    };
    let name = path.rsplit('.').next();
    let operand = &mut *around.operand;
    let mut resolve = |wanted: &str| match (operand(wanted), &around.own) {
        (Err(_), Some(own)) if Some(wanted) == name => Ok(own.clone()),
        (found, _) => found,
    };
    let expression = Expression::parse(text, kind, &draws, &mut resolve)
        .map_err(|complaint| parameters.complain(complaint))?;
    let mut before = expression.operands.iter().filter(|operand| operand.row != OperandRow::Own);
    if let Some(operand) = before.next() {
        fan_out(node, around)?;
        if before.chain([operand]).chain(&around.own).any(|operand| operand.nullable) {
            let what = "previous() of a field that can be null, or in one";
            return Err(node.error(what, "use required fields outside of optional structs"));
        }
    }
    let own = around.own.as_ref().map(|own| own.leaf);
    let repeats = expression.operands.iter().any(|operand| Some(operand.leaf) == own);
    if repeats && expression.longest().is_some_and(|longest| longest > SHORT_BYTES) {
        let what = format!("texts that can grow from row to row, beyond {SHORT_BYTES} bytes");
        return Err(node.error(what, "shorten them: substring(..., 1, 60)"));
    }
    can_fit(&expression, kind).map_err(|complaint| parameters.complain(complaint))?;
    Ok(ValueSpec::Expression(expression))
}

/// The draws of an expression for a field of type `kind`. Those for dates, times and integers are whole
/// numbers.
fn draws(node: SpecNode<'_>, kind: &LogicalType) -> Result<Vec<NamedDraw>> {
    let kind = match kind {
        LogicalType::Decimal { .. } => kind.clone(),
        kind if kind.is_real() => LogicalType::Double,
        _ => LogicalType::Integer { bits: 64, signed: true },
    };
    let mut draws = Vec::new();
    for (name, node) in node.any_table("`draws`")?.entries() {
        let table = node.table("a draw of an expression", &["quantiles"])?;
        let parameters = table.need("quantiles", "a draw of an expression")?;
        let quantiles = Quantiles::read(parameters, &kind)?;
        draws.push(NamedDraw { name: name.to_owned(), quantiles, kind: kind.clone() });
    }
    Ok(draws)
}

/// Refuses formulas whose values never fit the type.
fn can_fit(expression: &Expression, kind: &LogicalType) -> Result<(), Complaint> {
    if kind.is_text() || *kind == LogicalType::Boolean {
        return Ok(());
    }
    let Some(reach) = expression.reach() else {
        return Err(("the formula always divides by zero".into(), "use another divisor".into()));
    };
    let (least, most) = match kind.is_real() {
        true => (-kind.most_real(), kind.most_real()),
        false => kind.real_range(),
    };
    // Values are rounded, so they may be half a unit outside of the range.
    let half = 0.5 / kind.one_real();
    let what = if reach.low - half > most {
        format!(
            "the formula's values are at least {}, too large for {}",
            Number::Real(reach.low),
            kind.a_name()
        )
    } else if reach.high + half < least {
        format!(
            "the formula's values are at most {}, too small for {}",
            Number::Real(reach.high),
            kind.a_name()
        )
    } else {
        return Ok(());
    };
    let operand = expression.operands.iter().find_map(|o| Some((&o.kind, o.kind.ticks_per_day()?)));
    let text = expression.text.trim();
    let advice = match (kind, kind.ticks_per_day(), operand) {
        (LogicalType::Time { .. }, Some(here), Some((LogicalType::Timestamp { .. }, there)))
            if here == there =>
        {
            format!("a time of day is the remainder of whole days: ({text}) % {here}")
        }
        (_, Some(here), Some((other, there))) if here < there => {
            let units = there / here;
            let (from, to) = (other.name(), kind.name());
            format!(
                "{units} units of a {from} are one unit of a {to}: divide, like floor(({text}) / {units})"
            )
        }
        _ => "use a wider type or another formula".to_owned(),
    };
    Err((what, advice))
}
