//! Unified diffs of one section: the file is `sections/<id>.md`, its lines are the lines of the section's text.
//!
//! ```text
//! diff   = "--- " old LF "+++ " new LF hunk+        nothing before, nothing after
//! old    = "a/sections/" id ".md" | "/dev/null"     the second for a section that is added
//! new    = "b/sections/" id ".md" | "/dev/null"     the second for a section that is removed
//! hunk   = "@@ -" start["," count] " +" start["," count] " @@" LF line+
//! line   = (" " | "-" | "+") text LF                the last LF may be missing
//! ```
//! A hunk applies at the line that it names and nowhere else (zero fuzz). A text has no line feed at its end; the file has.

use crate::model::is_id;

/// Most bytes of a diff.
pub const DIFF_MAX: usize = 64 << 10;
/// Lines around a change that [`between`] writes.
const CONTEXT: usize = 3;

/// Why a text is no diff of one section, or does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// Larger than [`DIFF_MAX`].
    #[error("expected at most {DIFF_MAX} bytes")]
    Size,
    /// Another header than of one file `sections/<id>.md`.
    #[error("line {line}: expected --- and +++ of one file sections/<id>.md")]
    Header {
        /// Line of the diff, from 1.
        line: usize,
    },
    /// No hunk, or a line that belongs to none.
    #[error("line {line}: expected a hunk, @@ -START,COUNT +START,COUNT @@")]
    Hunk {
        /// Line of the diff, from 1.
        line: usize,
    },
    /// A hunk with other counts than its header says, without a change, or not after the hunk before.
    #[error(
        "line {line}: the hunk has other lines than its header says, none that changes, or overlaps"
    )]
    Counts {
        /// Line of the hunk's header, from 1.
        line: usize,
    },
    /// A line of the text is another than the diff says.
    #[error("line {line}: the section has another line there")]
    Context {
        /// Line of the diff, from 1.
        line: usize,
    },
}

impl DiffError {
    /// The line of the diff, from 1; 0 for all of it.
    pub fn line(self) -> usize {
        match self {
            Self::Size => 0,
            Self::Header { line }
            | Self::Hunk { line }
            | Self::Counts { line }
            | Self::Context { line } => line,
        }
    }
}

/// What a line of a hunk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Stays.
    Keep,
    /// Goes.
    Delete,
    /// Comes.
    Insert,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkLine {
    /// What it does.
    pub sign: Sign,
    /// The line without its sign.
    pub text: String,
}

/// A hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Line of its header in the diff, from 1.
    pub line: usize,
    /// Lines of the old text before it.
    pub before: usize,
    /// Lines of the new text before it.
    pub before_new: usize,
    /// Its lines.
    pub lines: Vec<HunkLine>,
}

/// What a diff does to its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileChange {
    /// The section stays, its text changes.
    Edit,
    /// The section is new.
    Add,
    /// The section goes.
    Remove,
}

/// A diff of one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionDiff {
    /// The section.
    pub section: String,
    /// What becomes of it.
    pub change: FileChange,
    /// Its hunks, at least one.
    pub hunks: Vec<Hunk>,
}

/// The lines of a text; none of an empty one.
fn lines_of(text: &str) -> Vec<&str> {
    if text.is_empty() {
        Vec::new()
    } else {
        text.split('\n').collect()
    }
}

/// What a line of the header names.
#[derive(Clone, Copy, PartialEq)]
enum Side<'t> {
    /// `/dev/null`.
    Nothing,
    /// The file of a section.
    Section(&'t str),
}

fn header<'t>(line: Option<&&'t str>, mark: &str, side: &str) -> Option<Side<'t>> {
    let name = line?.strip_prefix(mark)?;
    if name == "/dev/null" {
        return Some(Side::Nothing);
    }
    let file = name.strip_prefix(side)?;
    let id = file.strip_prefix("sections/")?.strip_suffix(".md")?;
    is_id(id).then_some(Side::Section(id))
}

/// A count or a start: digits, without a zero before others.
fn number(text: &str) -> Option<usize> {
    let plain =
        !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (text == "0" || !text.starts_with('0')))
        .then(|| text.parse().ok())
        .flatten()
}

/// Start and count of one side; a count that is not said is 1.
fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}

/// Lines before a range: a range without lines names the line after which it stands.
fn before(start: usize, count: usize) -> Option<usize> {
    if count == 0 {
        Some(start)
    } else {
        start.checked_sub(1)
    }
}

impl SectionDiff {
    /// Reads a diff.
    ///
    /// # Errors
    /// [`DiffError`] at the first line that is not as the grammar says.
    pub fn parse(text: &str) -> Result<Self, DiffError> {
        if text.len() > DIFF_MAX {
            return Err(DiffError::Size);
        }
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let old = header(lines.first(), "--- ", "a/").ok_or(DiffError::Header { line: 1 })?;
        let new = header(lines.get(1), "+++ ", "b/").ok_or(DiffError::Header { line: 2 })?;
        let (section, change) = match (old, new) {
            (Side::Section(old), Side::Section(new)) if old == new => (old, FileChange::Edit),
            (Side::Nothing, Side::Section(new)) => (new, FileChange::Add),
            (Side::Section(old), Side::Nothing) => (old, FileChange::Remove),
            _ => return Err(DiffError::Header { line: 2 }),
        };
        let mut hunks = Vec::new();
        let (mut at, mut old_end, mut new_end) = (2, 0, 0);
        while at < lines.len() || hunks.is_empty() {
            let (hunk, next) = hunk(&lines, at)?;
            let count = |not: Sign| hunk.lines.iter().filter(|line| line.sign != not).count();
            // What stands between two hunks is the same in both texts.
            let gap = hunk.before.checked_sub(old_end);
            if gap.is_none() || gap != hunk.before_new.checked_sub(new_end) {
                return Err(DiffError::Counts { line: at + 1 });
            }
            old_end = hunk.before + count(Sign::Insert);
            new_end = hunk.before_new + count(Sign::Delete);
            hunks.push(hunk);
            at = next;
        }
        Ok(Self {
            section: section.to_owned(),
            change,
            hunks,
        })
    }

    /// The new text.
    ///
    /// # Errors
    /// [`DiffError::Context`] where a line of the old text is another than a hunk says.
    pub fn apply(&self, old: &str) -> Result<String, DiffError> {
        let old = lines_of(old);
        let (mut new, mut at) = (Vec::new(), 0);
        for hunk in &self.hunks {
            let outside = DiffError::Context { line: hunk.line };
            new.extend_from_slice(old.get(at..hunk.before).ok_or(outside)?);
            at = hunk.before;
            for (place, line) in hunk.lines.iter().enumerate() {
                if line.sign != Sign::Insert {
                    if old.get(at) != Some(&line.text.as_str()) {
                        return Err(DiffError::Context {
                            line: hunk.line + 1 + place,
                        });
                    }
                    at += 1;
                }
                if line.sign != Sign::Delete {
                    new.push(&line.text);
                }
            }
        }
        new.extend_from_slice(&old[at..]);
        Ok(new.join("\n"))
    }
}

/// The hunk whose header stands at a place, and the place after it.
fn hunk(lines: &[&str], start: usize) -> Result<(Hunk, usize), DiffError> {
    let line = start + 1;
    let ranges = lines.get(start).and_then(|text| {
        let (old, new) = text
            .strip_prefix("@@ -")?
            .strip_suffix(" @@")?
            .split_once(" +")?;
        Some((range(old)?, range(new)?))
    });
    let ((old_start, old_count), (new_start, new_count)) =
        ranges.ok_or(DiffError::Hunk { line })?;
    let counts = DiffError::Counts { line };
    let mut hunk = Hunk {
        line,
        before: before(old_start, old_count).ok_or(counts)?,
        before_new: before(new_start, new_count).ok_or(counts)?,
        lines: Vec::new(),
    };
    let (mut old_left, mut new_left, mut at, mut changes) =
        (old_count, new_count, start + 1, false);
    while old_left > 0 || new_left > 0 {
        let text = lines.get(at).ok_or(counts)?;
        let (sign, from_old, from_new) = match text.as_bytes().first() {
            Some(b' ') => (Sign::Keep, 1, 1),
            Some(b'-') => (Sign::Delete, 1, 0),
            Some(b'+') => (Sign::Insert, 0, 1),
            _ => return Err(counts),
        };
        old_left = old_left.checked_sub(from_old).ok_or(counts)?;
        new_left = new_left.checked_sub(from_new).ok_or(counts)?;
        changes |= sign != Sign::Keep;
        hunk.lines.push(HunkLine {
            sign,
            text: text[1..].to_owned(),
        });
        at += 1;
    }
    if changes { Ok((hunk, at)) } else { Err(counts) }
}

/// Deletions and insertions that turn `old` into `new`, line by line: as few as there can be, deletions first.
fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Sign, &'t str)> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let width = b.len() + 1;
    // Lines that both share from (i, j) on.
    let mut shared = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            shared[i * width + j] = if a[i] == b[j] {
                shared[(i + 1) * width + j + 1] + 1
            } else {
                shared[(i + 1) * width + j].max(shared[i * width + j + 1])
            };
        }
    }
    let keep = |line: &&'t str| (Sign::Keep, *line);
    let mut found: Vec<_> = old[..head].iter().map(keep).collect();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            found.push((Sign::Keep, a[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < a.len()
            && (j == b.len() || shared[(i + 1) * width + j] >= shared[i * width + j + 1])
        {
            found.push((Sign::Delete, a[i]));
            i += 1;
        } else {
            found.push((Sign::Insert, b[j]));
            j += 1;
        }
    }
    found.extend(old[old.len() - tail..].iter().map(keep));
    found
}

/// The diff that turns a section's text into another, with three lines around each change; `None` is a section that is not
/// there. Empty where nothing changes, or where an empty section comes or goes.
pub fn between(section: &str, old: Option<&str>, new: Option<&str>) -> String {
    let (old_lines, new_lines) = (lines_of(old.unwrap_or("")), lines_of(new.unwrap_or("")));
    let script = script(&old_lines, &new_lines);
    let changed: Vec<usize> = (0..script.len())
        .filter(|at| script[*at].0 != Sign::Keep)
        .collect();
    if changed.is_empty() {
        return String::new();
    }
    let name = |side: &str, of: Option<&str>| match of {
        Some(_) => format!("{side}/sections/{section}.md"),
        None => "/dev/null".to_owned(),
    };
    let mut out = format!("--- {}\n+++ {}\n", name("a", old), name("b", new));
    for group in changed.chunk_by(|a, b| b - a <= 2 * CONTEXT) {
        let from = group[0].saturating_sub(CONTEXT);
        let to = (group[group.len() - 1] + CONTEXT + 1).min(script.len());
        let count =
            |lines: &[(Sign, &str)], not: Sign| lines.iter().filter(|line| line.0 != not).count();
        let side = |not: Sign| {
            let (before, lines) = (count(&script[..from], not), count(&script[from..to], not));
            format!("{},{lines}", if lines == 0 { before } else { before + 1 })
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            side(Sign::Insert),
            side(Sign::Delete)
        ));
        for (sign, line) in &script[from..to] {
            let mark = match sign {
                Sign::Keep => ' ',
                Sign::Delete => '-',
                Sign::Insert => '+',
            };
            out.push_str(&format!("{mark}{line}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_worked_diff() {
        let diff = between("tone", Some("a\nb\nc\nd\ne"), Some("a\nb\nC\nd\ne"));
        let expected = concat!(
            "--- a/sections/tone.md\n+++ b/sections/tone.md\n@@ -1,5 +1,5 @@\n",
            " a\n b\n-c\n+C\n d\n e\n"
        );
        assert_eq!(diff, expected);
        let read = SectionDiff::parse(&diff).unwrap();
        assert_eq!(
            (read.section.as_str(), read.change),
            ("tone", FileChange::Edit)
        );
        assert_eq!(read.apply("a\nb\nc\nd\ne").unwrap(), "a\nb\nC\nd\ne");
        assert_eq!(
            read.apply("z\na\nb\nc\nd\ne"),
            Err(DiffError::Context { line: 4 })
        );
        assert_eq!(
            between("x", None, Some("a")),
            "--- /dev/null\n+++ b/sections/x.md\n@@ -0,0 +1,1 @@\n+a\n"
        );
    }

    #[test]
    fn what_is_no_diff_is_refused_with_its_line() {
        let fault = |text: &str| SectionDiff::parse(text).unwrap_err();
        let head = "--- a/sections/x.md\n+++ b/sections/x.md\n";
        assert_eq!(fault(""), DiffError::Header { line: 1 });
        assert_eq!(fault("--- a/x.md\n"), DiffError::Header { line: 1 });
        assert_eq!(
            fault("--- a/sections/../x.md\n"),
            DiffError::Header { line: 1 }
        );
        assert_eq!(
            fault("--- a/sections/x.md\n+++ b/sections/y.md\n"),
            DiffError::Header { line: 2 }
        );
        assert_eq!(
            fault("--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a"),
            DiffError::Header { line: 2 }
        );
        assert_eq!(fault(head), DiffError::Hunk { line: 3 });
        for (hunk, expected) in [
            ("@@ -1 +1 @@\n a\n", DiffError::Counts { line: 3 }),
            ("@@ -1,2 +1 @@\n-a\n+b\n", DiffError::Counts { line: 3 }),
            ("@@ -1 +1 @@\n-a\n+b\n+c\n", DiffError::Hunk { line: 6 }),
            ("@@ -1 +2 @@\n-a\n+b\n", DiffError::Counts { line: 3 }),
            ("@@ -0 +1 @@\n-a\n+b\n", DiffError::Counts { line: 3 }),
            ("@@ -01 +1 @@\n-a\n+b\n", DiffError::Hunk { line: 3 }),
            (
                "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file",
                DiffError::Hunk { line: 6 },
            ),
            (
                "@@ -3 +3 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n",
                DiffError::Counts { line: 6 },
            ),
        ] {
            assert_eq!(fault(&format!("{head}{hunk}")), expected, "{hunk}");
        }
        assert_eq!(fault(&"x".repeat(DIFF_MAX + 1)), DiffError::Size);
    }

    proptest! {
        #[test]
        fn applying_the_diff_of_two_texts_to_the_first_gives_the_second(
            a in "([abc]{0,2}\n){0,12}[abc]", b in "([abc]{0,2}\n){0,12}[abc]",
        ) {
            let diff = between("x", Some(&a), Some(&b));
            if a == b {
                prop_assert_eq!(diff, "");
            } else {
                let read = SectionDiff::parse(&diff).unwrap();
                prop_assert_eq!(read.apply(&a), Ok(b.clone()));
                let back = SectionDiff::parse(&between("x", Some(&b), Some(&a))).unwrap();
                prop_assert_eq!(back.apply(&b), Ok(a));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), old in any::<String>()) {
            if let Ok(read) = SectionDiff::parse(&text) {
                drop(read.apply(&old));
            }
        }
    }
}
