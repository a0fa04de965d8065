//! What a report computes from rows, held against what gates and audits recorded of the same rows, and against itself.

use serde_json::Value;

use super::Desk;

/// A report of an iteration.
pub struct Report(Value);

fn near(a: f64, b: f64) {
    assert!(
        (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0),
        "{a} and {b}"
    );
}

fn square(value: f64) -> f64 {
    value * value
}

fn of(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} in {row}"))
}

impl Report {
    fn part(&self, name: &str) -> &Value {
        let mut parts = self.0["parts"].as_array().unwrap().iter();
        parts.find(|part| part["part"] == name).unwrap()
    }

    /// Tables of a part by their key.
    fn tables(&self, part: &str, key: &str) -> Vec<&Value> {
        let tables = self.part(part)["tables"].as_array().unwrap();
        tables
            .iter()
            .filter(|table| table["table"] == key)
            .collect()
    }

    /// Rows of all tables with a key.
    fn rows(&self, part: &str, key: &str) -> Vec<&Value> {
        let tables = self.tables(part, key);
        tables
            .iter()
            .flat_map(|table| table["rows"].as_array().unwrap())
            .collect()
    }

    fn row(&self, part: &str, key: &str, words: &[(&str, &str)]) -> &Value {
        let rows = self.rows(part, key);
        let is = |row: &&&Value| words.iter().all(|(name, word)| row[*name] == *word);
        let mut found = rows.iter().filter(is);
        let first = found
            .next()
            .unwrap_or_else(|| panic!("{key} {words:?} in {rows:#?}"));
        assert!(found.next().is_none(), "{key} {words:?} twice");
        first
    }

    /// Squared errors and calibration errors are those that gates P1, P2 and P8 recorded.
    fn errors(&self, patch: &str) {
        for change in self.rows("calibration", "squared_error") {
            let on = change["split"].as_str().unwrap();
            let error = |rubric: &str| {
                let row = self.row(
                    "calibration",
                    "errors",
                    &[("rubric", rubric), ("rows_of", on)],
                );
                assert_eq!(row["rows"], change["rows"], "{on}");
                square(of(row, "rmse"))
            };
            near(error(patch) - error("in force"), of(change, "change"));
        }
        let ece = self.row("calibration", "ece", &[("candidate", patch)]);
        let shown = |rubric: &str| {
            let row = self.row(
                "calibration",
                "errors",
                &[("rubric", rubric), ("rows_of", "dev")],
            );
            of(row, "ece")
        };
        near(shown("in force"), of(ece, "before"));
        near(shown(patch), of(ece, "after"));
        // Out of fold, rewards have the mean of the labels that they were fitted on, to a few per mille.
        let fit = [("rubric", patch), ("rows_of", "fit, out of fold")];
        let fit = self.row("calibration", "errors", &fit);
        assert!((of(fit, "reward") - of(fit, "label")).abs() < 0.01, "{fit}");
    }

    /// Points of a curve are all labelled rows, each once; so are tenths, and their residuals add up.
    fn groups(&self, rubric: &str) {
        let whole = self.row(
            "calibration",
            "errors",
            &[("rubric", rubric), ("rows_of", "dev")],
        );
        let (rows, reward, label) = (of(whole, "rows"), of(whole, "reward"), of(whole, "label"));
        let sum = |rows: &[&Value], value: &str, weight: &str| -> f64 {
            rows.iter()
                .map(|row| of(row, value) * of(row, weight))
                .sum()
        };
        let curve: Vec<&Value> = self.rows("calibration", "curve");
        let curve: Vec<&Value> = curve
            .into_iter()
            .filter(|row| row["rubric"] == rubric)
            .collect();
        let counts: f64 = curve.iter().map(|row| of(row, "labels")).sum();
        near(counts, rows);
        near(sum(&curve, "label", "labels") / rows, label);
        near(sum(&curve, "reward", "labels") / rows, reward);
        let scores: Vec<f64> = curve.iter().map(|row| of(row, "score")).collect();
        assert!(scores.windows(2).all(|two| two[0] < two[1]), "{scores:?}");
        // A calibrated reward never falls as the score rises.
        let rewards: Vec<f64> = curve.iter().map(|row| of(row, "reward")).collect();
        assert!(
            rewards.windows(2).all(|two| two[0] <= two[1] + 1e-12),
            "{rewards:?}"
        );
        let tables = self.tables("residuals", "tenths");
        let table = tables.iter().find(|table| {
            let title = table["title"].as_str().unwrap();
            title.contains(&format!(", {rubric}, on dev"))
        });
        let tenths: Vec<&Value> = table.unwrap()["rows"].as_array().unwrap().iter().collect();
        let counts: f64 = tenths.iter().map(|row| of(row, "rows")).sum();
        near(counts, rows);
        near(sum(&tenths, "mean", "rows") / rows, label - reward);
    }

    /// Before a patch slices are what the audit recorded; their squared errors add up to that of all rows.
    fn slices(&self, patch: &str) {
        let tables = self.tables("slices", "after");
        let dev = tables
            .iter()
            .find(|of| of["title"].as_str().unwrap().ends_with("on dev"));
        let dev: Vec<&Value> = dev.unwrap()["rows"].as_array().unwrap().iter().collect();
        assert_eq!(dev.len(), self.rows("slices", "before").len());
        for row in &dev {
            let words = |name| row[name].as_str().unwrap();
            let named = [("family", words("family")), ("slice", words("slice"))];
            let before = self.row("slices", "before", &named);
            for (now, then) in [
                ("shrunk_before", "shrunk_mean"),
                ("raw_before", "raw_mean"),
                ("mse_before", "mse"),
                ("class_before", "class"),
                ("rows", "rows"),
            ] {
                assert_eq!(row[now], before[then], "{now} of {named:?}");
            }
        }
        let all = |key: &str| -> f64 {
            let some = dev.iter().filter(|row| row[key].is_number());
            some.map(|row| of(row, key) * of(row, "rows")).sum()
        };
        for (key, rubric) in [("mse_before", "in force"), ("mse", patch)] {
            let whole = self.row(
                "calibration",
                "errors",
                &[("rubric", rubric), ("rows_of", "dev")],
            );
            near(all(key), square(of(whole, "rmse")) * of(whole, "rows"));
        }
    }

    /// The shortest patch is one that does what it is listed for.
    fn segments(&self, patch: &str) {
        let listed = self.rows("segments", "segments");
        let mended = self.rows("segments", "mended");
        assert_eq!(listed.len(), mended.len());
        for (listed, mended) in listed.iter().zip(&mended) {
            assert_eq!(listed["slice"], mended["slice"]);
            let off = |key: &str| of(mended, key).abs() >= 0.03;
            match mended["patch"].as_str().unwrap() {
                "none is needed" => assert!(!off("shrunk_before"), "{mended}"),
                "none of those evaluated" => assert!(off("shrunk_before"), "{mended}"),
                named => {
                    assert_eq!(named, patch);
                    assert!(off("shrunk_before") && !off("shrunk_mean"), "{mended}");
                }
            }
        }
    }

    /// Values are means over policies: those of all logs, weighted by their rows.
    fn values(&self) {
        for row in self.rows("values", "direct") {
            let (low, high) = (of(&row["interval"], "low"), of(&row["interval"], "high"));
            near(f64::midpoint(low, high), of(row, "value"));
            assert!(high - low >= 2.0 * 1.959 * of(row, "se"), "{row}");
            assert!((0.0..=1.0).contains(&of(row, "share")), "{row}");
        }
        let share = self.rows("uncertainty", "shares");
        assert!(!share.is_empty());
    }
}

/// Values of an iteration's own calibrators, rubric by rubric, as its report has them.
pub fn direct(desk: &mut Desk, iteration: &str) -> Vec<f64> {
    desk.ok(&format!("report iteration {iteration} -o {iteration}.json"));
    let bytes = std::fs::read(desk.at.join(format!("{iteration}.json"))).unwrap();
    let report = Report(serde_json::from_slice(&bytes).unwrap());
    report.values();
    let rows = report.rows("values", "direct");
    rows.into_iter().map(|row| of(row, "value")).collect()
}

/// Reads the report of a decided iteration of one patch and checks what it computes from rows; gives its JSON.
pub fn check(desk: &mut Desk, iteration: &str, patch: &str) -> Report {
    desk.ok(&format!("report iteration {iteration} -o {iteration}.json"));
    let bytes = std::fs::read(desk.at.join(format!("{iteration}.json"))).unwrap();
    let report = Report(serde_json::from_slice(&bytes).unwrap());
    assert_eq!(report.0["report"], "clover/iteration-report/v2");
    report.errors(patch);
    for rubric in ["in force", patch] {
        report.groups(rubric);
    }
    report.slices(patch);
    report.segments(patch);
    report.values();
    // Shares of one table are of the same rows.
    for row in report.rows("complexity", "rules") {
        if of(row, "fired") > 0.0 {
            let rows = of(row, "fired") / of(row, "share");
            assert!((rows - rows.round()).abs() < 1e-6, "{row}");
        }
    }
    report
}

/// Publishes a report, computes it again, and shows it within the width of a terminal.
pub fn publish(desk: &mut Desk, iteration: &str) {
    let said = desk
        .ok(&format!("report iteration {iteration} --publish --json"))
        .json();
    let hash = said["data"]["bundle_hash"].as_str().unwrap();
    let list = desk.ok("report list --json").json();
    let newest = list["data"]["reports"].as_array().unwrap().last().unwrap();
    assert_eq!(newest["bundle_hash"], hash);
    let seq = newest["seq"].as_u64().unwrap();
    assert!(
        desk.ok(&format!("report show {seq}"))
            .out
            .contains("as signed")
    );
    let replayed = desk.ok(&format!("replay {seq}")).out;
    assert!(replayed.contains("identical"), "{replayed}");
    let text = desk
        .ok(&format!("report iteration {iteration} --format md"))
        .out;
    // Documents stand as they were written.
    let own = text.lines().filter(|line| !line.starts_with("    "));
    for line in own {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
