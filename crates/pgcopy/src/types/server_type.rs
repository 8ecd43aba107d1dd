//! Types without an encoder here: the server itself turns text into their wire format.

use std::fmt;
use std::sync::Arc;

/// Asks a server for the wire format of values.
pub trait ReadsText: fmt::Debug + Send + Sync {
    /// The type's name in SQL.
    fn name(&self) -> &str;

    /// The same below domains, without a modifier.
    fn base(&self) -> &str;

    /// Whether the type has no wire format: its values are sent and received as text.
    fn is_text(&self) -> bool;

    /// Returns the wire format of each text, or the reason why the type does not hold it.
    ///
    /// # Errors
    /// The server did not answer, so the values are unknown.
    fn wire(&self, texts: &[&str]) -> Result<Vec<Result<Vec<u8>, String>>, String>;
}

/// A type whose values only the server reads from text.
#[derive(Clone, Debug)]
pub struct ServerType(pub Arc<dyn ReadsText>);

impl PartialEq for ServerType {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for ServerType {}

impl fmt::Display for ServerType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}
