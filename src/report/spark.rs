//! Lines of block characters: a series at a glance in a terminal.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One block for each value, from the least of `range` to its largest; values beyond it stand at its ends.
pub fn line(values: &[f64], (least, largest): (f64, f64)) -> String {
    let width = largest - least;
    let block = |value: &f64| {
        let share = if width > 0.0 {
            (value - least) / width
        } else {
            0.0
        };
        // Eighths, so that only the largest value fills a block.
        let at = (share.clamp(0.0, 1.0) * 7.0).round();
        let found = BLOCKS
            .iter()
            .zip(0_i32..)
            .find(|(_, place)| at <= f64::from(*place));
        found.map_or('█', |(block, _)| *block)
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_are_the_ends_of_the_blocks() {
        assert_eq!(line(&[0.0, 0.5, 1.0, 9.0, -9.0], (0.0, 1.0)), "▁▅██▁");
        assert_eq!(line(&[3.0, 3.0], (3.0, 3.0)), "▁▁");
        assert_eq!(line(&[], (0.0, 1.0)), "");
    }
}
