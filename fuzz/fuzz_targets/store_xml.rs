//! Any text as a store's answer: the keys of its lists, as they are written there, and a refusal that can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sawmill_store::fuzzed_answer;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let (objects, uploads, refusal) = fuzzed_answer(&text);
    for keys in [objects, uploads].into_iter().flatten() {
        assert!(keys.len() <= text.matches("<Key").count(), "{keys:?}");
        assert!(keys.iter().map(String::len).sum::<usize>() <= text.len(), "{keys:?}");
    }
    assert!(refusal.starts_with(" (400") && refusal.ends_with(')'), "{refusal:?}");
    assert!(refusal.chars().count() < 500 && !refusal.chars().any(char::is_control), "{refusal:?}");
});
