//! Two readers of YAML, written apart, over many changed patches: where `audits/verify` reads a document at all,
//! it reads the same. 1,500 documents; 20,000 with `RUN_SLOW_TESTS=1`; others with `CLOVER_SEED=N`.

use std::io::Write as _;
use std::process::Stdio;

use clover::event::payload::rubric::RubricLeaf;
use clover::ground::canon;
use clover::rubric::Code;
use clover::workflow::patches;
use clover::workflow::patches::Bench;

use crate::support::iterated;
use crate::support::verifiers;

/// `SplitMix64` (Steele, Lea and Flood 2014).
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % most as u64).unwrap()
    }
}

/// What is put into documents: YAML's own signs, and words that mean something to a patch.
const PIECES: &[&str] = &[
    "\n",
    " ",
    "  ",
    ":",
    ": ",
    "-",
    "- ",
    "#",
    " # note",
    "'",
    "\"",
    "[",
    "]",
    "{",
    "}",
    ",",
    ", ",
    "+",
    "&a ",
    "*a",
    "!!str ",
    "|",
    ">",
    "~",
    "null",
    "yes",
    "true",
    "false",
    "0",
    "1e3",
    "0x10",
    "0.5",
    ".5",
    "-1",
    "1.5",
    "0.0000001",
    "NaN",
    ".nan",
    "bmj.com",
    "BMJ",
    "ü",
    "\u{2028}",
    "\t",
    "---\n",
    "...",
    "abstention",
    "length_bias_cap",
    "contradiction_check",
    "guards",
    "required: false",
    "penalty: 0.2",
    "obligations.x",
    "requires_stakeholders: true",
    "triggers+: [tax]",
    "if_tokens_gt: 300",
    "\\n",
    "''",
    "<= 0.5",
    "rationale: again\n",
    "id: other-1",
    "151",
    "2",
    "<<: {a: b}",
    "? a",
    "%YAML 1.2\n",
];

fn documents(draws: &mut Draws, total: usize) -> Vec<String> {
    let flow = iterated::patch("flow-1", "length_bias_cap", iterated::CONCISE);
    let seeds = [iterated::PATCH, flow.as_str()];
    let document = |_| {
        let mut text: Vec<char> = seeds[draws.below(2)].chars().collect();
        for _ in 0..=draws.below(3) {
            let at = draws.below(text.len());
            let piece: Vec<char> = PIECES[draws.below(PIECES.len())].chars().collect();
            let end = at + draws.below(6).min(text.len() - at);
            match draws.below(4) {
                0 => drop(text.splice(at..at, piece)),
                1 => drop(text.splice(at..end, piece)),
                2 => drop(text.drain(at..end)),
                _ => {
                    // The value of a line gives way.
                    let colon = text[at..].iter().position(|c| *c == ':').unwrap_or(0) + at;
                    let line = text[colon..].iter().position(|c| *c == '\n');
                    let line = line.unwrap_or(text.len() - colon) + colon;
                    let from = (colon + 2).min(line);
                    drop(text.splice(from..line, piece));
                }
            }
            if text.is_empty() {
                text.push(' ');
            }
        }
        text.into_iter().collect()
    };
    (0..total).map(document).collect()
}

/// What we make of a document: the check of its grammar that it fails, else its diff where it gets that far.
fn ours(bench: &Bench, document: &str) -> Result<Option<String>, Code> {
    match bench.check(document.as_bytes(), None) {
        Ok((patch, checked)) => {
            let diff = patches::diff_of(&checked.diff);
            let said = canon::to_bytes(&(patch.family.as_str(), patch.id, diff)).unwrap();
            Ok(Some(String::from_utf8(said).unwrap()))
        }
        Err(fault) if fault.code < Code::Noop => Err(fault.code),
        Err(_) => Ok(None),
    }
}

fn theirs(leaves: &[RubricLeaf], documents: &[String]) -> Vec<String> {
    let script = verifiers::repository().join("tests/it/support/documents.py");
    let mut python = verifiers::python3()
        .arg(script)
        .arg(verifiers::audits_verify())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = serde_json::to_string(leaves).unwrap() + "\n";
    for document in documents {
        input += &(serde_json::to_string(document).unwrap() + "\n");
    }
    let mut stdin = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn two_readers_agree_on_changed_patches() {
    if !verifiers::python() {
        return;
    }
    let slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let seed = std::env::var("CLOVER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let documents = documents(&mut Draws(seed), if slow { 20_000 } else { 1_500 });
    let bench = Bench::loose(iterated::rubric());
    let said = theirs(&patches::leaves_of(&bench.rubric), &documents);
    assert_eq!(said.len(), documents.len());
    let (mut wrong, mut counts) = (Vec::new(), [0, 0, 0]);
    for (document, theirs) in documents.iter().zip(&said) {
        let agreed = match (ours(&bench, document), theirs.as_str()) {
            (_, "unsure") => {
                counts[0] += 1;
                true
            }
            (Err(_), "refused") => {
                counts[1] += 1;
                true
            }
            (Err(_), _) | (Ok(_), "refused") => false,
            (Ok(ours), theirs) => {
                counts[2] += 1;
                ours.is_none_or(|ours| ours == theirs)
            }
        };
        if !agreed {
            let ours = bench
                .check(document.as_bytes(), None)
                .map(|(_, found)| found.diff);
            wrong.push(format!("{document}\nours {ours:?}\ntheirs {theirs}\n"));
        }
    }
    let [unsure, refused, read] = counts;
    println!("{unsure} beyond plain YAML, {refused} refused by both, {read} read the same");
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        documents.len(),
        wrong[..wrong.len().min(8)].join("\n")
    );
    assert!(refused > documents.len() / 10 && read > documents.len() / 20);
}
