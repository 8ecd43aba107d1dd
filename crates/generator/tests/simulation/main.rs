//! Runs `gen` and `convert` into a simulated object store: the real code of both and of store folders, a bucket in
//! memory, and one seed that decides what happens when.

mod failed;
#[path = "../../../loader/tests/simulation/shared/seeds.rs"]
mod seeds;
mod world;
