//! Pages whose tables come from a registry: a test compares them, and writes them under `UPDATE=1`.
#![expect(
    clippy::disallowed_methods,
    reason = "a test reads and writes the page itself"
)]

/// The page with the rows of the table below `head` replaced.
fn replaced(page: &str, head: &str, rows: &str) -> String {
    let (before, rest) = page.split_once(head).expect("the head of the table");
    let mut lines = rest.split_inclusive('\n').skip(1);
    let rule = lines.next().expect("the rule under the head");
    let after: String = lines.skip_while(|line| line.starts_with('|')).collect();
    format!("{before}{head}\n{rule}{rows}{after}")
}

/// Holds the tables of a page of the workspace, each by its head, to rows that end with a line break.
///
/// # Panics
/// Where a row differs, and nobody asked for `UPDATE=1`.
pub fn hold(path: &str, tables: &[(&str, String)]) {
    let path = &format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).expect("a page of this repository");
    let fresh = tables.iter().fold(page.clone(), |page, (head, rows)| {
        replaced(&page, head, rows)
    });
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &fresh).expect("a page of this repository");
        return;
    }
    assert_eq!(page, fresh, "UPDATE=1 writes {path}");
}
