//! Plans on their way to other machines: our tables and operators, and all others as Ballista encodes them.
//!
//! Our tables and operators begin with [`MARK`]; the rest is JSON. Ballista's codecs decode everything else.

/// Leaves functions to the codec in `others`.
macro_rules! functions_of_others {
    ($($decode:ident $encode:ident $function:ident;)+) => {$(
        fn $decode(&self, name: &str, buf: &[u8]) -> Result<Arc<$function>> {
            self.others.$decode(name, buf)
        }

        fn $encode(&self, node: &$function, buf: &mut Vec<u8>) -> Result<()> {
            self.others.$encode(node, buf)
        }
    )+};
}

mod logical;
mod physical;

use datafusion::common::internal_datafusion_err;
use datafusion::error::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use logical::SawmillLogicalCodec;
pub use physical::SawmillPhysicalCodec;

/// How our tables and operators begin. The digit changes with the form of what follows, so that an executor of another
/// version refuses them.
const MARK: &[u8] = b"SAWMILL1";

fn encode(description: &impl Serialize, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.extend_from_slice(MARK);
    serde_json::to_writer(buffer, description)
        .map_err(|error| internal_datafusion_err!("a plan cannot be encoded: {error}"))
}

/// Decodes the bytes of [`encode`]; `None` if the bytes are not ours.
fn decoded<T: DeserializeOwned>(buffer: &[u8]) -> Option<Result<T>> {
    let json = buffer.strip_prefix(MARK)?;
    let read = serde_json::from_slice(json);
    Some(read.map_err(|error| internal_datafusion_err!("a plan of another version of Sawmill: {error}")))
}
