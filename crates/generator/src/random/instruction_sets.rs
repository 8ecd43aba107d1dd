//! One function compiled for several instruction sets, the best one chosen when it is called.
//!
//! The loops of drawing and shredding are plain Rust that the compiler vectorises; what they gain
//! from wider registers is in the figures of `docs/generator.md`. Baseline x86-64 has neither 64-bit
//! multiplication in vectors (AVX-512DQ), of which every draw needs two, nor bit extraction (BMI2).

/// Declares a function whose body is compiled for AVX-512 too, where the processor has it.
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
                    // SAFETY: the processor has every feature that `wide` is compiled for, as was
                    // just asked; the body is safe code.
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
    // Each answer is one load and one test behind the first.
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
