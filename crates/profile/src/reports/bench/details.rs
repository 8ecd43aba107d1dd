//! Details of one side of a case besides its times: phases, bottleneck, samples over time, the flame graph.

use crate::measure::results::{Case, SideResult};
use crate::reports::bench::{over_time, verdict, waterfall};
use crate::reports::chart::svg::escape;
use crate::reports::page::Section;
use crate::watch::folded_stacks::FoldedStacks;

/// The section of a side.
pub(super) fn section(case: &Case, side: &SideResult) -> Section {
    let mut text = String::new();
    if let Some(found) = &side.bottleneck {
        let found = verdict::capitalised(&found.to_string());
        text.push_str(&format!("<p class=\"finding\">{}</p>\n", escape(&found)));
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
    Section::new(
        &format!("{}: {}", case.title(), side.name),
        "The run whose time is nearest to the median.",
        text,
    )
}
