//! Simulated truth: worlds whose answer is known, and how often each statistic says it.
//!
//! Seconds by default; at least 2,000 worlds each with `RUN_SLOW_TESTS=1`. Bands are the claim, widened by three
//! Monte Carlo errors.

mod decisions;
mod intervals;
mod tests_and_distances;
