//! One self-contained HTML page for all reports: the verdict as its title, contents, sections (single cases
//! fold), and how it was measured.
//!
//! Pictures are inline SVG. Colours follow the reader's light or dark theme. The two scripts (flame
//! graphs, and opening the section of a link) load nothing.

use std::fmt::Write as _;

use crate::reports::chart::svg::escape;

const STYLE: &str = include_str!("style.css");

/// Opens the folded section that the address names.
const OPENER: &str = concat!("<script>", include_str!("opener.js"), "</script>");

/// A page under construction.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The command and its time: a short line above the title.
    pub origin: String,
    /// The verdict in a sentence: the page's title.
    pub verdict: String,
    /// Further sentences below it.
    pub findings: Vec<String>,
    /// The machine, versions and other circumstances: name and value.
    pub facts: Vec<(String, String)>,
    /// The sections, in order.
    pub sections: Vec<Section>,
}

/// A section of a page.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub title: String,
    /// How to read it; may be empty.
    pub note: String,
    /// Its content as HTML; a section without content is left out.
    pub content: String,
    /// Whether and how it folds.
    pub fold: Fold,
}

/// Whether a section folds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// It is always open.
    #[default]
    Never,
    /// It can be closed.
    Open,
    /// It can be opened.
    Closed,
}

impl Section {
    /// A section that does not fold.
    pub fn new(title: &str, note: &str, content: String) -> Self {
        Self { title: title.to_owned(), note: note.to_owned(), content, fold: Fold::Never }
    }

    /// The same section, folding.
    pub fn folding(self, fold: Fold) -> Self {
        Self { fold, ..self }
    }

    fn html(&self, number: usize) -> String {
        let note = match self.note.is_empty() {
            true => String::new(),
            false => format!("<p class=\"note\">{}</p>\n", escape(&self.note)),
        };
        let heading = format!("<h2>{}</h2>", escape(&self.title));
        let inside = format!("{note}{}", self.content);
        match self.fold {
            Fold::Never => format!("<section id=\"s{number}\">\n{heading}\n{inside}</section>\n"),
            fold => {
                let open = if fold == Fold::Open { " open" } else { "" };
                format!(
                    "<details class=\"section\"{open}>\n<summary>{heading}</summary>\n\
                     <div id=\"s{number}\">{inside}</div>\n</details>\n"
                )
            }
        }
    }
}

impl Page {
    /// The whole page.
    pub fn html(&self) -> String {
        let facts = Section::new("How it was measured", "", self.fact_list());
        let there = self.sections.iter().filter(|section| !section.content.is_empty());
        let sections: Vec<&Section> = there.chain(Some(&facts).filter(|_| !self.facts.is_empty())).collect();
        let mut body = format!("<header>\n<p class=\"origin\">{}</p>\n", escape(&self.origin));
        // Writing to a String cannot fail.
        let _ = writeln!(body, "<h1>{}</h1>", escape(&self.verdict));
        for finding in &self.findings {
            let _ = writeln!(body, "<p class=\"finding\">{}</p>", escape(finding));
        }
        body.push_str("</header>\n");
        body.push_str(&contents(&sections));
        for (number, section) in sections.iter().enumerate() {
            body.push_str(&section.html(number));
        }
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{OPENER}\n</body>\n</html>\n",
            escape(&self.verdict)
        )
    }

    fn fact_list(&self) -> String {
        let mut text = String::from("<dl>\n");
        for (name, value) in self.facts.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        text + "</dl>\n"
    }
}

/// Links to the sections; pages with few of them need none.
fn contents(sections: &[&Section]) -> String {
    if sections.len() < 3 {
        return String::new();
    }
    let mut text = String::from("<nav aria-label=\"Contents\"><ul>\n");
    for (number, section) in sections.iter().enumerate() {
        let _ = writeln!(text, "<li><a href=\"#s{number}\">{}</a></li>", escape(&section.title));
    }
    text + "</ul></nav>\n"
}

/// A table; its first column names the lines. Columns of numbers are aligned right. In narrow windows its lines are cards.
pub fn text_table(heads: &[&str], lines: &[Vec<String>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let is_number = |line: &Vec<String>, place: usize| {
        let first = line.get(place).and_then(|cell| cell.chars().next());
        first.is_none_or(|c| c.is_ascii_digit() || "-+.<>".contains(c))
    };
    let is_left = |place: usize| place == 0 || lines.iter().any(|line| !is_number(line, place));
    let classes: Vec<&str> =
        (0..heads.len()).map(|place| if is_left(place) { " class=\"l\"" } else { "" }).collect();
    let class = |place: usize| classes.get(place).copied().unwrap_or_default();
    let mut text = String::from("<div class=\"scroll\"><table class=\"cards\">\n<thead><tr>");
    for (place, head) in heads.iter().enumerate() {
        // Writing to a String cannot fail, here and below.
        let _ = write!(text, "<th{}>{}</th>", class(place), escape(head));
    }
    text.push_str("</tr></thead><tbody>\n");
    for line in lines {
        text.push_str("<tr>");
        for (place, cell) in line.iter().enumerate() {
            let head = heads.get(place).copied().unwrap_or_default();
            let (class, cell) = (class(place), escape(cell));
            let _ = write!(text, "<td{class} data-name=\"{}\">{cell}</td>", escape(head));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_title_and_every_section_is_linked() {
        let section = |title: &str, content: &str| Section::new(title, "", content.to_owned());
        let page = Page {
            verdict: "a < b".into(),
            facts: vec![("machine".into(), "a computer".into()), ("empty".into(), String::new())],
            sections: vec![
                section("one", "<p>1</p>"),
                section("left out", ""),
                section("two", "<p>2</p>").folding(Fold::Closed),
            ],
            ..Page::default()
        };
        let html = page.html();
        assert!(html.contains("<title>a &lt; b</title>") && html.contains("<h1>a &lt; b</h1>"));
        assert_eq!(html.matches("<li><a href=").count(), 3);
        assert!(!html.contains("left out") && !html.contains("<dt>empty"));
        assert!(html.contains("<details class=\"section\">"));
    }
}
