//! Compiles a function for several instruction sets and chooses the best one at each call.
//!
//! The loops of drawing and shredding are plain Rust that the compiler vectorises. `docs/generator.md` shows
//! what they gain from wider registers. Baseline x86-64 lacks 64-bit vector multiplication (AVX-512DQ), which
//! every draw needs twice, and bit extraction (BMI2).

/// Declares a function whose body is also compiled for AVX-512, for processors that have it.
macro_rules! widest {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $returned:ty)? $body:block) => {
        $(#[$meta])*
        $vis fn $name($($argument: $type),*) $(-> $returned)? {
            #[inline(always)]
            fn portable($($argument: $type),*) $(-> $returned)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
                fn wide($($argument: $type),*) $(-> $returned)? {
                    portable($($argument),*)
                }
                if $crate::random::instruction_sets::has_avx512() {
                    // SAFETY: the check above ensures that the processor has all features that `wide` is
                    // compiled for; the body is safe code.
                    return unsafe { wide($($argument),*) };
                }
            }
            portable($($argument),*)
        }
    };
}
pub(crate) use widest;

/// Whether the processor has the features that [`widest`] compiles for.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn has_avx512() -> bool {
    // After the first call, each check is one load and one test.
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}
