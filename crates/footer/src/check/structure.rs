//! Checks the schema's elements.

use super::Check;

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
}
