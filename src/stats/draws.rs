//! Seeded draws: one stream per replicate, so that results do not depend on the number of threads.

pub(super) use clover_num::draws::Draws;
