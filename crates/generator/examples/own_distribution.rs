//! Writes a dataset whose numbers distributions of `rand_distr` draw.
//!
//! ```sh
//! cargo run --package sawmill-generator --example own_distribution -- /tmp/orders.parquet
//! ```

use std::error::Error;
use std::path::PathBuf;

use rand_distr::{Gamma, SkewNormal};
use sawmill_generator::{Dataset, Job, Layout, Output, write};
use sawmill_profile::Profile;

const SPEC: &str = r#"
name = "orders"

[[fields]]
name = "amount"
type = "double"
values = { uniform = { min = 0, max = 1 } }

[[fields]]
name = "weights"
type = "list"
length = { weights = { 1 = 60, 2 = 40 } }
element = { type = "int32", values = { uniform = { min = 1, max = 9 } } }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let out = std::env::args_os().nth(1).map_or_else(|| "orders.parquet".into(), PathBuf::from);
    let orders = Dataset::from_toml(SPEC)?
        .with_distribution("amount", Gamma::new(2.0, 30.0)?)?
        .with_distribution("weights.list.element", SkewNormal::new(20.0, 5.0, 3.0)?)?;
    let (layout, output) = (Layout::new(100_000, 1)?, Output::File(out));
    let (phase, cancel) = (Profile::new().phase("generate"), false.into());
    for file in write(&orders, &Job::new(&layout, &output, &phase, &cancel))? {
        println!("{}: {} rows", file.path.display(), file.rows);
    }
    Ok(())
}
