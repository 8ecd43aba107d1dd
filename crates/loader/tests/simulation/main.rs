//! Loads in a simulated world: the engine's own code, a target and files in memory, and one seed that decides what
//! happens when.

#[path = "shared/seeds.rs"]
mod seeds;
mod world;
