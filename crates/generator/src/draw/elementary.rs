//! Logarithm, exponential and power: the same bits on every platform.
//!
//! The standard library's `f64::ln`, `exp` and `powf` call the C library of the system, and these differ in the last
//! bit: between glibc, musl and macOS, and within glibc between processors with and without fused multiply-add. The
//! crate `libm` is plain Rust; it uses nothing but operations that IEEE 754 rounds correctly. Everything that a file's
//! bytes depend on is computed by these functions (`clippy.toml` refuses the others).

/// The natural logarithm.
pub(crate) fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// e to the power of `x`.
pub(crate) fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `x` to the power of `y`.
pub(crate) fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}
