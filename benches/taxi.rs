//! The 19 columns of New York's yellow taxi files, with similar figures.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};

/// A batch of `rows` rows; `seed` determines their values.
pub fn batch(rows: usize, seed: u64) -> RecordBatch {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
    let mut column = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array, true));
    column("vendor_id", Arc::new(Int32Array::from_iter_values((0..rows).map(|_| draw(2) as i32 + 1))));
    for name in ["pickup", "dropoff"] {
        let stamps = (0..rows).map(|_| (1_704_067_200 + draw(2_678_400) as i64) * 1_000_000);
        column(name, Arc::new(TimestampMicrosecondArray::from_iter_values(stamps)));
    }
    for name in ["passengers", "rate"] {
        column(
            name,
            Arc::new(Int64Array::from_iter((0..rows).map(|_| (draw(20) > 0).then(|| draw(6) as i64)))),
        );
    }
    let flags = (0..rows).map(|_| if draw(100) == 0 { "Y" } else { "N" });
    column("store_and_forward", Arc::new(StringViewArray::from_iter_values(flags.collect::<Vec<_>>())));
    for name in ["from", "to", "payment"] {
        column(name, Arc::new(Int32Array::from_iter_values((0..rows).map(|_| draw(265) as i32))));
    }
    for i in 0..10 {
        let cents = (0..rows).map(|_| (draw(12) > 0 || i > 2).then(|| draw(9_000) as f64 / 100.0));
        column(&format!("amount_{i}"), Arc::new(Float64Array::from_iter(cents)));
    }
    RecordBatch::try_from_iter_with_nullable(columns).expect("the columns are of one length")
}
