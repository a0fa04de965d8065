//! The experiment that commands are about where they name none: by option, by the shell, by `clover use`, or the only one.

use super::Desk;

/// Two open experiments.
fn desk() -> Desk {
    let mut desk = Desk::with_ledger();
    desk.ok("key new lena --role labeler");
    desk.ok("experiment register exp-2 --title Two --purpose testing");
    desk
}

/// The experiment of the newest label design.
fn designed(desk: &mut Desk, words: &str) -> String {
    let id = format!("d-{}", desk.head()["size"]);
    desk.ok(&format!(
        "label design new {id} --purpose calibrate --probability 1 {words}"
    ));
    let listed = desk.ok("log --kind label.design_registered --limit 1 --json");
    let listed = listed.json();
    listed["data"]["entries"][0]["body"]["experiment"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn a_command_is_about_the_experiment_that_was_named_last_and_nearest() {
    let mut desk = desk();
    let design = "label design new d --purpose calibrate --probability 1";
    let design: Vec<_> = design.split(' ').collect();
    desk.refused(
        &design,
        2,
        &[
            "several experiments are open: exp-1, exp-2",
            "clover use exp-1",
        ],
    );
    let before = desk.head();
    let named = desk.ok("use exp-2 --json").json();
    assert_eq!(
        (&named["data"]["experiment"], &named["data"]["source"]),
        (&"exp-2".into(), &"folder".into())
    );
    assert_eq!(desk.head(), before, "nothing is recorded");
    assert_eq!(designed(&mut desk, ""), "exp-2");
    // The shell wins over the folder, and an option over both.
    desk.experiment = Some("exp-1");
    assert_eq!(designed(&mut desk, ""), "exp-1");
    assert_eq!(designed(&mut desk, "--experiment exp-2"), "exp-2");
    let shadowed = desk.ok("use exp-2");
    assert!(
        shadowed
            .err
            .contains("CLOVER_EXPERIMENT is set in this shell and wins"),
        "{}",
        shadowed.err
    );
    desk.experiment = None;
    desk.ok("use --clear");
    desk.refused(&design, 2, &["several experiments are open"]);
    desk.ok("experiment close exp-1 --reason done --yes");
    assert_eq!(designed(&mut desk, ""), "exp-2");
    let only = desk.ok("use --json").json();
    assert_eq!(only["data"]["source"], "only_one");
}

#[test]
fn a_name_that_is_no_experiment_is_refused_where_it_was_given() {
    let mut desk = desk();
    desk.refused(
        &["use", "exp-9"],
        5,
        &["exp-9: no such experiment; open: exp-1, exp-2"],
    );
    desk.experiment = Some("exp-9");
    let design = "label design new d --purpose calibrate --probability 1";
    let design: Vec<_> = design.split(' ').collect();
    desk.refused(
        &design,
        5,
        &["CLOVER_EXPERIMENT names exp-9: no such experiment"],
    );
    // A file that something else wrote names no experiment.
    desk.experiment = None;
    std::fs::write(desk.at.join(".clover/experiment"), "exp 1\u{7}\n").unwrap();
    desk.refused(
        &design,
        2,
        &["expected no control characters", "clover use --clear"],
    );
    desk.ok("use --clear");
}
