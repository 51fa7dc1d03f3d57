//! `cargo xtask parity` as a program: its exit status, its JSON, and what it says of files that it cannot use.

mod faults;
mod files;
mod recording;
mod run;
