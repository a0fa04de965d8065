//! What is wider than a terminal, broken so that it fits. A word is never broken, since it may be a hash or a path that somebody
//! copies, nor is a line that is a command as a whole.

use crate::view::text::flow;

/// Columns by which what follows on the next line is indented.
const HANGING: usize = 4;
/// Blocks that a series keeps at least.
const BLOCKS_MIN: usize = 8;
/// Blocks of a series, from the lowest to the highest.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Whether a line is a command, which is pasted as it is.
pub(super) fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("clover ") || line.starts_with("$ ")
}

/// One line in so many columns.
pub(super) fn line(text: &str, columns: usize) -> String {
    if width(text) <= columns || is_command(text) {
        return text.to_owned();
    }
    let indent = width(text) - width(text.trim_start());
    flow(text, (0, indent + HANGING), columns)
}

/// Lines in so many columns, each by itself.
pub(super) fn lines(text: &str, columns: usize) -> String {
    let all: Vec<String> = text.split('\n').map(|of| line(of, columns)).collect();
    all.join("\n")
}

/// A message of several lines in so many columns, of which the first begins at another.
pub fn after(column: usize, text: &str, columns: usize) -> String {
    let mut at = column;
    let all = text.split('\n').map(|of| {
        let begins = std::mem::take(&mut at);
        let fits = is_command(of) || begins + width(of) <= columns;
        if fits {
            of.to_owned()
        } else {
            flow(of, (begins, HANGING), columns)
        }
    });
    all.collect::<Vec<_>>().join("\n")
}

/// A line of a chart in so many columns: its series get fewer blocks before its words are broken.
pub(super) fn chart(text: &str, columns: usize) -> String {
    let mut words: Vec<String> = text.split(' ').map(ToOwned::to_owned).collect();
    loop {
        let all: usize = words.iter().map(|word| width(word) + 1).sum::<usize>() - 1;
        let series = words.iter_mut().filter(|word| is_series(word));
        let Some(longest) = series.max_by_key(|word| width(word)) else {
            break;
        };
        let (beyond, own) = (all.saturating_sub(columns), width(longest));
        if beyond == 0 || own <= BLOCKS_MIN {
            break;
        }
        *longest = fewer(
            longest,
            (own - beyond.min(own - BLOCKS_MIN)).max(BLOCKS_MIN),
        );
    }
    line(&words.join(" "), columns)
}

fn is_series(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| BLOCKS.contains(&c))
}

/// A series in fewer blocks: each as high as those that it stands for are on average.
fn fewer(series: &str, blocks: usize) -> String {
    let place = |c: char| BLOCKS.iter().position(|block| *block == c).unwrap_or(0);
    let places: Vec<usize> = series.chars().map(place).collect();
    (0..blocks)
        .map(|at| {
            let (from, to) = (at * places.len() / blocks, (at + 1) * places.len() / blocks);
            let stretch = &places[from..to.max(from + 1)];
            BLOCKS[(stretch.iter().sum::<usize>() + stretch.len() / 2) / stretch.len()]
        })
        .collect()
}

/// A help text in so many columns: what stands side by side, three blanks apart, goes one below another.
pub fn help(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for of in text.lines() {
        if width(of) <= columns || is_command(of) {
            out.push_str(of);
        } else {
            out.push_str(&apart(of, columns));
        }
        out.push('\n');
    }
    out
}

fn apart(text: &str, columns: usize) -> String {
    let lead = width(text) - width(text.trim_start());
    let parts = text.trim_start().split("   ").map(str::trim);
    let (mut rows, mut row): (Vec<String>, String) = (Vec::new(), " ".repeat(lead));
    for part in parts.filter(|part| !part.is_empty()) {
        let is_empty = row.trim().is_empty();
        if !is_empty && width(&row) + 3 + width(part) > columns {
            rows.push(std::mem::replace(&mut row, " ".repeat(lead)));
        } else if !is_empty {
            row.push_str("   ");
        }
        row.push_str(part);
    }
    rows.push(row);
    let rows = rows.into_iter().map(|row| {
        // What follows goes below the second of two columns, where there are two.
        let below = row.trim_start().find("  ").map_or(HANGING, |at| at + 2);
        flow(&row, (0, lead + below), columns)
    });
    rows.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_words_stay_whole() {
        let command = format!("  clover gate show {}", "g".repeat(60));
        assert_eq!(line(&command, 40), command);
        let hash = "a".repeat(64);
        assert_eq!(
            line(&format!("root {hash}"), 40),
            format!("root\n    {hash}")
        );
        assert_eq!(line("one two three", 8), "one two\n    three");
    }

    #[test]
    fn a_series_gets_fewer_blocks_and_keeps_its_shape() {
        assert_eq!(fewer("▁▁▁▁████", 2), "▁█");
        assert_eq!(fewer("▁▃▅▇", 2), "▂▆");
        let wide = format!("labels {} at scores 0 to 1", "▁█".repeat(80));
        let fitted = chart(&wide, 60);
        assert_eq!(
            (width(&fitted), fitted.lines().count()),
            (60, 1),
            "{fitted}"
        );
        let two = format!("{} and {} up to here", "▁".repeat(100), "█".repeat(50));
        assert!(chart(&two, 60).lines().all(|line| width(line) <= 60));
    }

    #[test]
    fn help_that_stands_side_by_side_goes_one_below_another() {
        let wide = "  plan  one · two    gate  three · four   last  five";
        assert_eq!(
            help(wide, 30),
            "  plan  one · two\n  gate  three · four\n  last  five\n"
        );
        let long = "  --out DIR  a folder that is new and yours";
        assert_eq!(
            help(long, 30),
            "  --out DIR  a folder that is\n             new and yours\n"
        );
    }
}
