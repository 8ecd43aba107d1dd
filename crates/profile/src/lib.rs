//! Phases, clocks, memory and counters of a run.
