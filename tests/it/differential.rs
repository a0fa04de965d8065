//! Two verifiers, written apart, over many random ledgers: they must agree on every finding, seq
//! and rule. 300 cases; 5,000 with `RUN_SLOW_TESTS=1`; others with `CLOVER_SEED=N`.

use std::path::Path;

use crate::support::mutator::Mutator;
use crate::support::verifiers;
use crate::support::verifiers::Case;
use crate::support::verifiers::Outcome;

/// Cases handed to one Python process.
const BATCH: usize = 250;

/// Why the two disagree, if they do.
fn disagreement(case: &Case, ours: &Outcome, theirs: &Result<Outcome, i64>) -> Option<String> {
    match theirs {
        Ok(theirs) if ours == theirs => None,
        Ok(theirs) => Some(format!("ours {:?}, theirs {:?}", ours.all, theirs.all)),
        Err(1) => Some(format!("ours {:?}, theirs ended in an error", ours.all)),
        // They give up where no line is an entry line; then ours finds fault with every line.
        Err(_) => {
            let lines = case.ledger.split(|byte| *byte == b'\n').count();
            let broken = ours.all.iter().filter(|(_, rule)| rule == "line_format");
            (broken.count() + 1 < lines).then(|| format!("ours {:?}, theirs gave up", ours.all))
        }
    }
}

#[test]
fn two_verifiers_agree_on_random_ledgers() {
    if !verifiers::python() {
        return;
    }
    let slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let seed = std::env::var("CLOVER_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (mut mutator, total) = (Mutator::new(seed), if slow { 5_000 } else { 300 });
    let (mut wrong, mut done, mut passed, mut judged) = (Vec::new(), 0, 0, 0);
    let mut rules = std::collections::BTreeMap::<String, u64>::new();
    while done < total {
        let cases: Vec<_> = (done..total.min(done + BATCH))
            .map(|_| mutator.case())
            .collect();
        for (case, theirs) in cases.iter().zip(verifiers::theirs_of_many(&cases)) {
            let ours = verifiers::ours(case);
            if let Some(why) = disagreement(case, &ours, &theirs) {
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
                    .join(format!("differential-{seed}-{done}"));
                std::fs::remove_dir_all(&folder).ok();
                case.write(&folder);
                wrong.push(format!("{}: {why}", folder.display()));
            } else {
                passed += usize::from(ours.first.is_none());
                judged += usize::from(theirs.is_ok());
                let rule = ours.first.map_or("none".to_owned(), |(_, rule)| rule);
                *rules.entry(rule).or_default() += 1;
            }
            done += 1;
        }
    }
    println!("{total} cases, {judged} judged by both, {passed} of them verified; first: {rules:?}");
    assert!(
        wrong.is_empty(),
        "{} of {total}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
