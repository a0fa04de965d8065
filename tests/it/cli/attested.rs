//! What an auditor attests of a tree that a ledger never was is named by `verify`.

use serde_json::json;

use super::Desk;

/// Records an attestation of a root at size 2, and says what `verify` notes of it.
fn noted(root: impl Fn(&mut Desk) -> String) -> bool {
    let mut desk = Desk::new();
    desk.ok("init --holder Ada --roles all --custodian cem");
    let root = root(&mut desk);
    let said =
        json!({"root": root, "size": 2, "statement": "every line was checked", "verdict": "pass"});
    desk.ok_words(&["record", "audit.attested", "--data", &said.to_string()]);
    let ran = desk.ok("verify");
    let text = format!("{}{}", ran.out, ran.err);
    text.contains("audit.attested at seq 2 names a root that this tree does not have at size 2")
}

#[test]
fn an_attested_root_that_the_tree_never_had_is_noted() {
    assert!(noted(|_| format!("{}=", "A".repeat(43))));
    assert!(!noted(|desk| {
        desk.head()["root"].as_str().unwrap().to_owned()
    }));
}
