//! Samples around names: holders that pass for two people, and ids that verifiers of another Unicode read otherwise.

use serde_json::Value;
use serde_json::json;

use super::forger::World;
use super::samples::ADA;
use super::samples::NEXT_LOG;
use super::samples::STRANGER;
use super::samples::good;
use super::samples::log_vkey;
use super::tampered;
use super::tampered::Sample;
use super::tampered_chosen;

/// Cleo is the custodian; `strict` keeps custodians and optimizers apart.
const OTHER_CLEO: &str = "Cle\u{43e}";

/// The good ledger with one more key, added under rulebook 18 or under the one that it named.
fn with_key(adopted: bool, holder: &str, roles: &[&str]) -> (World, usize) {
    let mut world = World::of(&good().lines);
    if adopted {
        tampered_chosen::adopt(&mut world, 18);
    }
    let data = tampered::key_added(STRANGER, holder, roles, STRANGER);
    let at = world.say(ADA, "key.added", 2, Value::Null, data);
    (world, at)
}

/// A history that goes on after the rotation of the log key.
pub fn sample(
    name: &'static str,
    done: &'static str,
    world: &World,
    first: Option<(usize, &'static str)>,
) -> Sample {
    let sealed = world.seal();
    let mut sample = Sample::forged(name, done, world, first);
    sample.case.checkpoint = Some(sealed.checkpoint(&[NEXT_LOG]));
    sample.case.log_key = Some(log_vkey(NEXT_LOG).to_string());
    sample
}

/// Every sample of this family.
pub fn all() -> Vec<Sample> {
    let (alike, at_alike) = with_key(true, OTHER_CLEO, &["optimizer"]);
    let (unseen, at_unseen) = with_key(true, "Cleo\u{200b}", &["optimizer"]);
    let (blank, at_blank) = with_key(true, "Cleo ", &["optimizer"]);
    let (before, _) = with_key(false, OTHER_CLEO, &["optimizer"]);
    let mut newer = World::of(&good().lines);
    tampered_chosen::adopt(&mut newer, 18);
    let data = json!({"purpose": "", "title": ""});
    // A letter of Unicode 15.0.
    let at_newer = newer.say(ADA, "experiment.registered", 1, "\u{1e4d0}".into(), data);
    vec![
        sample(
            "holder-who-looks-alike",
            "Under strict separation the custodian Cleo got a second key, as optimizer, with a Cyrillic letter in her name.",
            &alike,
            Some((at_alike, "separation")),
        ),
        sample(
            "holder-with-unseen-mark",
            "Under strict separation the custodian Cleo got a second key, as optimizer, with a mark of no width in her name.",
            &unseen,
            Some((at_unseen, "separation")),
        ),
        sample(
            "holder-with-blank",
            "Under strict separation the custodian Cleo got a second key, as optimizer, with a space after her name.",
            &blank,
            Some((at_blank, "separation")),
        ),
        sample(
            "good-holder-not-asked",
            "A second spelling of the custodian's name, under rulebook 17, which does not ask how holders are spelled.",
            &before,
            None,
        ),
        sample(
            "id-of-newer-unicode",
            "An experiment was named with a character that Unicode 13.0 does not assign.",
            &newer,
            Some((at_newer, "schema")),
        ),
    ]
}
