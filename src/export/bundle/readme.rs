//! The page that a bundle opens with: what it is, how it is checked, what it proves and what not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clover_event::Kind;

use super::BundleContents;
use super::LINES;
use super::PART;

/// The page, in Markdown.
pub(super) fn text(contents: &BundleContents, kinds: &BTreeMap<&'static str, u64>) -> String {
    let shown = contents.size - contents.withheld;
    let is_part = contents.withheld > 0 || contents.experiment.is_some();
    let mut page = String::from("# An audit bundle of a Clover ledger\n\n");
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    line(format!("- Log: `{}`.", contents.origin));
    line(format!(
        "- Entries: {shown} shown of {}, under root `{}`.",
        contents.size, contents.root
    ));
    if let Some(experiment) = &contents.experiment {
        line(format!(
            "- Shown: experiment `{experiment}`, and entries of no experiment."
        ));
    }
    if contents.withheld > 0 {
        line(format!(
            "- Withheld: {} entries. Of each its place and its leaf hash are shown, and its id where an entry shown names it.",
            contents.withheld
        ));
    }
    if !contents.redacted.is_empty() {
        line(format!(
            "- Left out on request: {}.",
            contents.redacted.join(", ")
        ));
    }
    line(format!(
        "- Blobs: {}. Private texts among them are encrypted; no key is in the bundle.",
        contents.blobs
    ));
    if let Some(erased) = kinds.get(Kind::SubjectErased.as_str()) {
        line(format!("- Erased subjects: {erased}. {ERASED}"));
    }
    for blob in &contents.without {
        line(format!(
            "- Not in the ledger, hence not here: blob `{blob}`."
        ));
    }
    line(CHECK.to_owned());
    line(if is_part { PROVED_OF_PART } else { PROVED }.to_owned());
    line(NOT_PROVED.to_owned());
    line("## What is in it\n".to_owned());
    let entries = if is_part { PART } else { LINES };
    line(format!(
        "| file | what it is |\n|---|---|\n| `{entries}` | the entries, one a line (`schema/ENVELOPE.md`) |"
    ));
    line(FILES.to_owned());
    line("## Kinds of the entries shown\n\n| kind | entries |\n|---|---|".to_owned());
    for (kind, count) in kinds {
        // Writing to a text cannot fail.
        let _ = writeln!(page, "| `{kind}` | {count} |");
    }
    page
}

const ERASED: &str = "Nobody can read texts under their keys: what reads them cannot be computed again. In a bundle of the whole \
    log `reports/retention-ledger.html` names it, one by one; in a ledger `clover report erasure` does.";

const CHECK: &str = "
## Check it

An archive is checked as it is; `unzip FILE -d bundle` makes a folder of it. Each way ends in `VERIFIED` or `FAILED`.

    clover verify FILE                  # with Clover; needs no ledger and no key
    python3 FILE                        # with Python alone, up to 65,535 files: the program inside of the archive
    python3 FILE --summary              # and who signed what, which plans, which peeks, which decisions
    python3 bundle/verify.py            # the same, of a folder
    sh bundle/verify.sh                 # with sha256sum and openssl alone: tree, checkpoint, keys, signatures

The programs in a bundle come from whoever made it. Who fears that, takes `audits/verify` from Clover itself:

    python3 audits/verify FILE --log-key VKEY --against CHECKPOINT

`clover verify` and the Python programs take both options. `--against` is a checkpoint that you kept from an earlier visit.
`--log-key` is the verifier key of the log, learnt from elsewhere. Without it a whole ledger could be forged with keys of its own.
";

const PROVED: &str = "## What it proves

- Each entry was signed by the key that it names, and its bytes are as they were signed.
- The entries are exactly those under the signed checkpoint, in their order: none is missing, none was added.
- Each entry kept the rules of the ledger when it was recorded. `clover verify FILE --recompute` computes numbers again.
";

const PROVED_OF_PART: &str = "## What it proves

- Each entry shown was signed by the key that it names, and its bytes are as they were signed.
- Each entry shown stands at its place in the log under the signed checkpoint.
- It does not prove that the rules were kept: that takes the whole log. It does not prove what is withheld.
- It does not prove that a key was live when it signed: an entry that is withheld may have ended it.
";

const NOT_PROVED: &str = "## What it does not prove

- That what was recorded is true or complete, or what anybody saw in private.
- That reports are right: they are readings of the log. Make the ledger again (`clover import ledger`) and the report from it.
- That the log has no longer version: keep the checkpoint, and hold it against a later one.
";

const FILES: &str = "| `checkpoint` | the signed root over all entries (`schema/CHECKPOINT.md`) |
| `checkpoints.jsonl` | earlier checkpoints |
| `keys/` | public keys that the entries name, `log.pem` that of the log |
| `blobs/` | what entries name by digest |
| `reports/` | reports, as the maker of the bundle rendered them; `published-ID.json` alone is checked: it holds the bytes that were signed |
| `schema/` | the pages of the formats |
| `verify/`, `verify.py`, `verify.sh` | programs that check it |
| `bundle.json` | what the bundle is of |
| `SHA256SUMS` | the digest of every other file |
";
