//! Every strategy, team size and level gives the bits of serial scalar code; and fails without a trace.

mod delays;
mod equality;
mod failures;
mod stack;
mod team;
