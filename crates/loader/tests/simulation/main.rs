//! Loads in a simulated world: the engine's own code, a target and files in memory, and one seed that decides what
//! happens when.

mod failed;
mod partly_verified;
#[path = "shared/seeds.rs"]
mod seeds;
mod world;
