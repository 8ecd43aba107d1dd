//! Loads into a simulated CrateDB: the code of the engine and of this target, a strict stand-in that interprets their
//! statements, and one seed that decides what happens when.

mod failed;
#[path = "../../../loader/tests/simulation/shared/seeds.rs"]
mod seeds;
mod world;
