//! The same answer for a terminal, a document and a browser; help and version as other programs have them.

use super::Desk;

#[test]
fn an_answer_is_set_as_text_markdown_or_a_page() {
    let mut desk = Desk::with_ledger();
    desk.ok("family open quarter --method spend --alpha 0.05 --members 3 --membership all");
    let text = desk.ok("family list").out;
    assert!(text.contains("quarter  spend"), "{text}");
    let document = desk.ok("family list --render markdown").out;
    for part in [
        "| family | method | alpha taken | members | standing |\n| --- |",
        "| quarter | spend | 0 of 50000 | 0 of 3 | open |",
        "Next:\n\n```text\nclover family show ID\n```",
    ] {
        assert!(document.contains(part), "{part:?} is not in:\n{document}");
    }
    let page = desk.ok("family show quarter --render html").out;
    for part in [
        "<!doctype html>",
        "<title>clover family show - Clover</title>",
        "<dt>alpha</dt><dd>0 of 50000 millionths taken</dd>",
        "<pre>clover prereg new --template gate</pre>",
    ] {
        assert!(page.contains(part), "{part:?} is not in:\n{page}");
    }
    assert!(!page.contains("<script"), "{page}");
    // What no one reads twice is not set twice.
    let refused = desk.run("family list --render html --json");
    assert_eq!(refused.code, 2, "{}", refused.err);
    let wrong = desk.run("family show nobody --render html");
    assert_eq!((wrong.code, wrong.out.as_str()), (5, ""));
}

#[test]
fn help_and_version_are_words_too() {
    let mut desk = Desk::new();
    let help = desk.ok("gate show --help").out;
    assert_eq!(desk.ok("help gate show").out, help);
    assert_eq!(desk.ok("help").out, desk.ok("--help").out);
    assert_eq!(desk.ok("version").out, desk.ok("--version").out);
    assert!(desk.ok("version").out.starts_with("clover "));
    assert_eq!(desk.run("help nothing").code, 2);
}
