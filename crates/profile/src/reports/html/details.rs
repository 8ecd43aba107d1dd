//! Details of one side of a case besides its times: phases, bottleneck, samples over time, the flame graph.

use super::{over_time, section, waterfall};
use crate::measure::results::{Case, SideResult};
use crate::reports::svg::escape;
use crate::watch::folded_stacks::FoldedStacks;

pub(super) fn draw(case: &Case) -> String {
    case.sides.iter().map(|side| draw_side(case, side)).collect()
}

fn draw_side(case: &Case, side: &SideResult) -> String {
    let mut text = String::new();
    if let Some(found) = &side.bottleneck {
        text.push_str(&format!("<p class=\"finding\">{}</p>\n", escape(&sentence(&found.to_string()))));
    }
    text.push_str(&waterfall::draw(&side.phases));
    if let Some(timeline) = &side.timeline {
        text.push_str(&over_time::draw(timeline));
    }
    if let Some(folded) = &side.folded_stacks {
        text.push_str("<h3>Where the CPU time went</h3>\n<div class=\"scroll\">");
        match FoldedStacks::parse(folded) {
            Ok(stacks) => text.push_str(&stacks.to_svg(&format!("{}, {}", case.title(), side.name))),
            Err(error) => text.push_str(&format!("<p class=\"note\">{}</p>", escape(&error.to_string()))),
        }
        text.push_str("</div>\n");
    }
    if text.is_empty() {
        return text;
    }
    section(
        &format!("{}: {}", case.title(), side.name),
        "The run whose time is nearest to the median.",
        &text,
    )
}

/// Capitalises the first letter of a text.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
