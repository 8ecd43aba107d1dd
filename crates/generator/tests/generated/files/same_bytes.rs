//! The same spec and seed produce the same values on every processor and with every C library.
//!
//! Each distribution has a golden hash. The test computes the hashes again in other processes: one without
//! the instruction sets by which glibc chooses its functions, and one in which every elementary function of
//! the C library is replaced with a function that aborts.

use std::fmt::Write as _;
use std::process::{Command, Output};

use arrow_array::{Array, BinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, StringArray};
use sawmill_generator::Dataset;

/// Name, type and values of a field, and the hash of its values for 100,000 rows of seed 1.
const GOLDEN: &[(&str, &str, &str, u64)] = &[
    (
        "polygon",
        "geometry",
        "{ polygon = { x = [0, 1], y = [-5, 5], radius = 0.5, corners = 7 } }",
        0xAFFE_FE82_FBD1_BC26,
    ),
    ("full_name", "string", "{ full_name = { locale = \"de_DE\" } }", 0xA945_9E47_E876_439E),
    ("last_name", "string", "{ last_name = { locale = \"ja_JP\" } }", 0x987B_A87F_B964_6B0A),
    ("company", "string", "\"company\"", 0x97E3_F678_2AD0_EAAF),
    ("phone", "string", "{ phone = { locale = \"it_IT\" } }", 0x9EE6_C1C8_1BE6_84F5),
    ("uniform", "double", "{ uniform = { min = -1.5, max = 9.25 } }", 0x05B0_56DF_0FE5_02DE),
    ("normal", "double", "{ normal = { mean = 3.0, stddev = 2.5 } }", 0xFC18_4CA6_A937_895F),
    ("normal_single", "float", "{ normal = { mean = 3.0, stddev = 2.5 } }", 0x97A0_373D_B789_3740),
    ("lognormal", "double", "{ lognormal = { median = 12.5, sigma = 1.5 } }", 0x2271_AB8C_3399_96C1),
    ("exponential", "double", "{ exponential = { mean = 0.75 } }", 0xA803_53A4_BE8A_BBE5),
    ("poisson", "int32", "{ poisson = { mean = 200 } }", 0x726F_63D7_4E7C_CE9A),
    ("geometric", "int32", "{ geometric = { p = 0.013 } }", 0xE177_D361_1BBF_9248),
    ("zipf_table", "int64", "{ zipf = { n = 50_000, s = 1.13 } }", 0x322E_61D3_88D4_91B3),
    ("zipf_buckets", "int64", "{ zipf = { n = 1_000_000_000, s = 0.87 } }", 0x2D52_D70B_0434_3ABC),
    ("zipf_harmonic", "int64", "{ zipf = { n = 1_000_000_000, s = 1.0 } }", 0xDA83_82CC_E24E_EA24),
    ("zipf_steep", "int64", "{ zipf = { n = 100_000, s = 1.13 } }", 0xD63D_9B78_D1E2_DF19),
    (
        "choice",
        "int64",
        "{ choice = { values = [5, 7, 11, 13, 17, 19, 23], s = 1.37 } }",
        0xADE7_2BB5_7F75_8F3B,
    ),
    ("weights", "int64", "{ weights = { 1 = 0.1, 2 = 0.2, 3 = 0.7 } }", 0xCD56_BB98_072F_8F67),
    (
        "quantiles",
        "double",
        "{ quantiles = { values = [-1.5, 0.25, 99], shares = [0, 0.1, 1], atoms = { 5 = 0.2 }, step = 0.01, stepped = 0.9 } }",
        0x4773_4753_4753_0A7C,
    ),
    (
        "quantiles_whole",
        "int64",
        "{ quantiles = { values = [-1500, 7, 900000000000], atoms = { 5 = 0.2 } } }",
        0x9BA0_4632_91C8_12CD,
    ),
    ("expression_ln", "double", "{ expression = \"ln(1 + uniform(0, 1000))\" }", 0xCDCE_0DE1_9932_A84B),
    ("expression_exp", "double", "{ expression = \"exp(normal(0, 3))\" }", 0x0834_9456_C911_4A69),
    (
        "expression_lognormal",
        "double",
        "{ expression = \"lognormal(3, 0.5) + exponential(2)\" }",
        0x0E9E_A462_BF7C_820B,
    ),
];

/// FNV-1a over the values' bytes.
fn hash(column: &dyn Array) -> u64 {
    fn bytes(column: &dyn Array) -> Vec<u8> {
        let any = column.as_any();
        if let Some(column) = any.downcast_ref::<Float64Array>() {
            column.values().iter().flat_map(|v| v.to_le_bytes()).collect()
        } else if let Some(column) = any.downcast_ref::<Float32Array>() {
            column.values().iter().flat_map(|v| v.to_le_bytes()).collect()
        } else if let Some(column) = any.downcast_ref::<StringArray>() {
            column.value_data().to_vec()
        } else if let Some(column) = any.downcast_ref::<BinaryArray>() {
            column.value_data().to_vec()
        } else if let Some(column) = any.downcast_ref::<Int64Array>() {
            column.values().iter().flat_map(|v| v.to_le_bytes()).collect()
        } else {
            let column = any.downcast_ref::<Int32Array>().expect("a column of one of these types");
            column.values().iter().flat_map(|v| v.to_le_bytes()).collect()
        }
    }
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
    bytes(column).into_iter().fold(0xCBF2_9CE4_8422_2325, step)
}

#[test]
fn every_distribution_draws_its_golden_values() {
    let mut different = String::new();
    for (name, kind, values, golden) in GOLDEN {
        let spec =
            format!("name = \"d\"\n[[fields]]\nname = \"{name}\"\ntype = \"{kind}\"\nvalues = {values}\n");
        let dataset = Dataset::from_toml(&spec).unwrap_or_else(|error| panic!("{error}\n{spec}"));
        let batch = dataset.batches(0..100_000, 1, 100_000).next().unwrap().unwrap();
        let found = hash(batch.column(0));
        if found != *golden {
            writeln!(different, "{name}: 0x{found:016X}").unwrap();
        }
    }
    assert!(different.is_empty(), "other values than before:\n{different}");
}

/// Computes the golden hashes in a separate process.
fn in_surroundings(name: &str, value: &str) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::same_bytes::every_distribution_draws_its_golden_values", "--nocapture"])
        .env(name, value)
        .output()
        .unwrap()
}

fn passed(output: &Output) -> bool {
    output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed")
}

#[test]
fn values_do_not_depend_on_the_processors_instruction_sets() {
    let output = in_surroundings("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX512F");
    assert!(passed(&output), "{output:?}");
}

/// A stronger test than another C library: functions that are never called cannot differ.
#[test]
#[cfg(target_os = "linux")]
fn values_do_not_depend_on_the_c_library() {
    let directory = tempfile::tempdir().unwrap();
    let (source, library) = (directory.path().join("refuse.c"), directory.path().join("refuse.so"));
    let mut text = "#include <unistd.h>\n".to_owned();
    let one = "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh cbrt tgamma lgamma";
    let two = "pow atan2 hypot";
    for (names, parameters) in [(one, "double x"), (two, "double x, double y")] {
        for name in names.split(' ') {
            let refuse = format!("write(2, \"{name} called\\n\", {}); _exit(70);", name.len() + 8);
            writeln!(text, "double {name}({parameters}) {{ {refuse} }}").unwrap();
            let single = parameters.replace("double", "float");
            writeln!(text, "float {name}f({single}) {{ {refuse} }}").unwrap();
        }
    }
    std::fs::write(&source, text).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let compile = Command::new(&compiler)
        .args(["-w", "-fno-builtin", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .output()
        .unwrap_or_else(|error| panic!("a C compiler is needed to build Sawmill; {compiler}: {error}"));
    assert!(compile.status.success(), "{compile:?}");
    let output = in_surroundings("LD_PRELOAD", library.to_str().unwrap());
    assert!(passed(&output), "{output:?}");
}
