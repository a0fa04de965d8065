//! The `clover` binary.

fn main() {}
