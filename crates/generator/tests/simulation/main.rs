//! Runs of `gen` and `convert` into a simulated object store: their own code and that of the store's folders, a bucket in
//! memory, and one seed that decides what happens when.

#[path = "../../../loader/tests/simulation/shared/seeds.rs"]
mod seeds;
mod world;
