//! What can be done to an estimate beside a gate's verdict, and what must be found.

use serde_json::Value;

use super::forger;
use super::forger::Sealed;
use super::forger::World;
use super::labelled;
use super::samples::*;
use super::tampered::Sample;
use super::verifiers::Case;

fn sample(
    (name, done): (&'static str, &'static str),
    sealed: &Sealed,
    first: Option<(usize, &'static str)>,
) -> Sample {
    let case = Case {
        ledger: forger::file(&sealed.lines),
        checkpoint: Some(sealed.checkpoint(&[LOG])),
        log_key: Some(log_vkey(LOG).to_string()),
        ..Case::default()
    };
    Sample {
        name,
        done,
        case,
        first,
    }
}

type Edit = fn(&mut Value);

/// Every sample of estimates beside a verdict.
pub fn all() -> Vec<Sample> {
    let story = labelled::story();
    let good = (
        "good-estimate-beside-a-gate",
        "Nothing. A gate is decided; the next checkpoint draws units for labels, and what these say is recorded beside the \
         verdict, of class asymptotic.",
    );
    let mut all = vec![sample(good, &World::of(&story.lines).seal(), None)];
    let edits: [((&str, &str), Edit); 4] = [
        (
            (
                "estimate-as-exact",
                "An estimate of the asymptotic class says that it is exact.",
            ),
            |data| data["class"] = "exact".into(),
        ),
        (
            (
                "estimate-of-another-grade",
                "An estimate of the asymptotic class claims the grade of an exact test.",
            ),
            |data| data["grade"] = "certified".into(),
        ),
        (
            (
                "estimate-of-another-sample",
                "The units that were labelled are not those that the checkpoint drew.",
            ),
            |data| data["seed"] = "00".repeat(32).into(),
        ),
        (
            (
                "estimate-shows-too-much",
                "An estimate says that its interval lies elsewhere than it does.",
            ),
            |data| data["shows"] = (!data["shows"].as_bool().unwrap()).into(),
        ),
    ];
    for (named, edit) in edits {
        let mut world = World::of(&story.lines);
        let at = story.at("estimated");
        edit(&mut world.items[at].body["data"]);
        all.push(sample(named, &world.seal(), Some((at, "decision"))));
    }
    all
}
