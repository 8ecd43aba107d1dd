//! Nothing: the benchmarks stand in files of their own.
