//! A key that is made where its holder is and admitted by an owner elsewhere: requests that were altered, replayed, or
//! meant for another ledger add nothing.

use serde_json::Value;

use super::Desk;

const ASK: &str = "key request --for ledger.example/cli --roles scorer,labeler --holder Bea";

/// A desk with a ledger, and a request that Bea made with keys of her own.
fn asked() -> Desk {
    let mut desk = Desk::with_ledger();
    as_bea(&mut desk, &format!("{ASK} -o bea.request"));
    desk
}

fn as_bea(desk: &mut Desk, line: &str) -> Value {
    let own = std::mem::replace(&mut desk.config, "bea");
    let answer = desk.ok(&format!("{line} --json")).json();
    desk.config = own;
    answer
}

/// The request with one member changed, in a file of its own.
fn altered(desk: &Desk, change: impl Fn(&mut Value)) -> String {
    let text = std::fs::read_to_string(desk.at.join("bea.request")).unwrap();
    let mut request: Value = serde_json::from_str(&text).unwrap();
    change(&mut request);
    desk.file("altered.request", &request.to_string())
}

#[test]
fn a_key_joins_without_leaving_its_holder() {
    // given
    let mut desk = Desk::with_ledger();
    let said = as_bea(&mut desk, &format!("{ASK} -o bea.request"));
    let private = desk.path("bea/clover/keys/Bea.pem");
    let secret = std::fs::read_to_string(&private).unwrap();
    let request = std::fs::read_to_string(desk.at.join("bea.request")).unwrap();
    // when
    let ran = desk.ok("key admit bea.request --roles scorer --yes --json");
    // then
    let data = &ran.json()["data"];
    assert_eq!(data["key_id"], said["data"]["key_id"]);
    assert_eq!(data["granted"], serde_json::json!(["scorer"]));
    assert!(ran.err.contains("asks for"), "{}", ran.err);
    let middle = secret.lines().nth(1).unwrap();
    assert!(!request.contains(middle));
    assert!(!desk.key_file("Bea").exists());
    as_bea(
        &mut desk,
        "record score.recorded --experiment exp-1 --data {\"draw\":0,\"item\":\"i\",\"judge\":\"j\",\"policy\":\"p\",\"score_micro\":5}",
    );
    desk.head();
}

#[test]
fn an_altered_request_is_refused() {
    let mut desk = asked();
    let changes: [(&str, Value); 4] = [
        ("roles", serde_json::json!(["labeler", "owner", "scorer"])),
        ("holder", "Eve".into()),
        ("human", false.into()),
        ("asked_at", "2026-11-21T10:00:00.000000Z".into()),
    ];
    for (field, value) in changes {
        let file = altered(&desk, |of| of["request"][field] = value.clone());
        let words = ["key", "admit", &file, "--yes"];
        desk.refused(
            &words,
            3,
            &["altered.request", "changed after the key signed it"],
        );
    }
}

#[test]
fn a_forged_key_is_refused() {
    let mut desk = asked();
    as_bea(&mut desk, &format!("{ASK} -o other.request --name other"));
    let other = std::fs::read_to_string(desk.at.join("other.request")).unwrap();
    let other: Value = serde_json::from_str(&other).unwrap();
    // The key of one request under the signatures of another.
    let file = altered(&desk, |of| {
        for field in ["key_id", "public_key"] {
            of["request"][field] = other["request"][field].clone();
        }
    });
    desk.refused(&["key", "admit", &file, "--yes"], 3, &["forged"]);
    let file = altered(&desk, |of| {
        of["request"]["key_id"] = other["request"]["key_id"].clone();
    });
    desk.refused(&["key", "admit", &file, "--yes"], 3, &["request.key_id"]);
}

#[test]
fn a_request_counts_once_and_in_its_own_ledger() {
    let mut desk = asked();
    desk.ok("key admit bea.request --yes");
    let again = ["key", "admit", "bea.request", "--yes"];
    desk.refused(&again, 11, &["was added at seq", "a key is added once"]);
    desk.ok("key retire Bea --reason gone --yes");
    desk.refused(&again, 11, &["was added at seq"]);
    let elsewhere =
        "key request --for ledger.example/other --roles scorer --holder Cy -o cy.request";
    as_bea(&mut desk, elsewhere);
    let words = ["key", "admit", "cy.request", "--yes"];
    desk.refused(
        &words,
        11,
        &["asks for ledger.example/other", "is ledger.example/cli"],
    );
}

#[test]
fn an_owner_grants_no_more_than_was_asked_and_is_asked_first() {
    let mut desk = asked();
    let more = [
        "key",
        "admit",
        "bea.request",
        "--roles",
        "scorer,arbiter",
        "--yes",
    ];
    desk.refused(&more, 11, &["arbiter is not among them"]);
    let unasked = ["key", "admit", "bea.request"];
    desk.refused(&unasked, 2, &["read this fingerprint", "--yes"]);
}

#[test]
fn what_is_no_request_is_named_by_line_and_field() {
    let mut desk = asked();
    let file = altered(&desk, |of| of["request"]["roles"] = "scorer".into());
    desk.refused(
        &["key", "admit", &file, "--yes"],
        4,
        &["altered.request:1", "roles"],
    );
    let file = altered(&desk, |of| of["request"]["more"] = 1.into());
    desk.refused(&["key", "admit", &file, "--yes"], 4, &["more"]);
}

#[test]
fn a_request_overwrites_neither_key_nor_file() {
    let mut desk = asked();
    let own = std::mem::replace(&mut desk.config, "bea");
    let words: Vec<_> = ASK.split(' ').chain(["-o", "new.request"]).collect();
    desk.refused(&words, 11, &["Bea.pem exists already"]);
    assert!(!desk.at.join("new.request").exists());
    let words: Vec<_> = ASK
        .split(' ')
        .chain(["-o", "bea.request", "--name", "second"])
        .collect();
    desk.refused(&words, 11, &["bea.request exists already"]);
    assert!(!desk.key_file("second").exists());
    desk.config = own;
}

/// A key of another ledger asks to be added to this one: the same key, which signs that it is here.
#[test]
fn a_key_that_its_holder_has_already_asks_by_proof() {
    let mut desk = asked();
    let before = as_bea(
        &mut desk,
        "key request --for ledger.example/other --roles scorer --holder Bea --key Bea -o other.request",
    );
    let said = as_bea(&mut desk, &format!("{ASK} --key Bea -o again.request"));
    assert_eq!(before["data"]["key_id"], said["data"]["key_id"]);
    let added = desk.ok("key admit again.request --yes --json").json();
    assert_eq!(added["data"]["key_id"], said["data"]["key_id"]);
    desk.refused(
        &["key", "admit", "other.request", "--yes"],
        11,
        &["asks for ledger.example/other"],
    );
    // Nobody can seal labels to a key without an age identity.
    let own = std::mem::replace(&mut desk.config, "bea");
    let words: Vec<_> = "key request --for ledger.example/cli --roles custodian --holder Bea --key Bea -o c.request".split(' ').collect();
    desk.refused(&words, 11, &["no age identity"]);
    desk.config = own;
}

/// Two ledgers of one home: the second one's keys stand beside those of the first.
#[test]
fn names_of_keys_of_several_ledgers_do_not_clash() {
    let mut desk = Desk::new();
    desk.ok("init one --holder Ada --roles all --custodian cem");
    desk.ok("--ledger one key new bot --role scorer");
    let ran = desk.ok("init two --holder Ada --roles all --custodian cem");
    assert!(ran.err.contains("cem-2.pem"), "{}", ran.err);
    desk.ok("--ledger two key new bot --role scorer");
    for name in ["owner", "cem", "cem-2", "bot", "bot-2"] {
        assert!(desk.key_file(name).exists(), "{name}");
    }
    // In one ledger a name is taken once.
    let ran = desk.run("--ledger two key new bot-2 --role scorer");
    assert_eq!(ran.code, 11, "{}", ran.err);
    assert!(ran.err.contains("bot-2.pem exists already"), "{}", ran.err);
    let keys = desk.ok("--ledger two key list --json").json();
    assert_eq!(keys["data"]["keys"].as_array().unwrap().len(), 3, "{keys}");
}
