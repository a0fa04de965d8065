//! Each kind of report on screens: axe finds nothing against it, nothing is logged or loaded, what is wider than the screen says so
//! and nothing else does, and every verdict stands on the screen. Chromium draws it; `CLOVER_AXE` is the file `axe.min.js`.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use serde_json::Value;

use super::printed;
use super::printed::CHROMIUM;
use crate::cli::Desk;

/// What a telephone, a tablet and a desk show, in pixels.
const WIDTHS: [u64; 3] = [390, 768, 1280];
/// What is asked of a page in a frame.
const ASKED: &str = include_str!("seen.js");
/// Milliseconds that a page has.
const BUDGET: &str = "--virtual-time-budget=60000";

/// The checker, where it is at hand.
pub(super) fn axe() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("CLOVER_AXE")?);
    path.exists().then_some(path)
}

fn opened(at: &Path, page: &Path) -> Output {
    let run = Command::new(CHROMIUM)
        .args(["--headless", "--no-sandbox", "--disable-gpu", BUDGET])
        .args(["--window-size=1400,900", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", at.join("chromium").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    run
}

/// Lines that a page wrote to the console.
fn logged(run: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let lines = said.lines().filter(|line| line.contains(":CONSOLE"));
    lines.map(ToOwned::to_owned).collect()
}

/// The page with the checker in it, without the policy that would keep it out.
fn asked(page: &str, axe: &str) -> String {
    let (before, rest) = page
        .split_once("<meta http-equiv=\"Content-Security-Policy\"")
        .unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    let (body, end) = after.split_once("</body>").unwrap();
    format!("{before}{body}<script>{axe}</script>\n<script>{ASKED}</script>\n</body>{end}")
}

/// What each width of a page shows.
fn shown(at: &Path, name: &str, axe: &Path) -> Vec<Value> {
    let path = |ending: &str| at.join(format!("{name}.{ending}"));
    let page = std::fs::read_to_string(path("html")).unwrap();
    let axe = std::fs::read_to_string(axe).unwrap();
    std::fs::write(path("asked.html"), asked(&page, &axe)).unwrap();
    let frames = WIDTHS.map(|width| {
        let source = format!("{name}.asked.html");
        format!(
            "<iframe src=\"{source}\" style=\"width:{width}px;height:900px;border:0\"></iframe>"
        )
    });
    let frames = frames.concat();
    let collect = "<script>addEventListener('message', (of) => { const p = document.createElement('p'); p.dataset.found = \
                   JSON.stringify(of.data); document.body.append(p); });</script>";
    let all =
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<body>{collect}{frames}</body>\n");
    std::fs::write(path("all.html"), all).unwrap();
    let run = opened(at, &path("all.html"));
    let dom = String::from_utf8_lossy(&run.stdout).into_owned();
    let found = dom.split("data-found=\"").skip(1);
    let found = found.map(|rest| printed::decoded(rest.split('"').next().unwrap()));
    found
        .map(|text| serde_json::from_str(&text).unwrap())
        .collect()
}

/// Holds a page on every screen.
pub(super) fn holds(desk: &Desk, name: &str, axe: &Path) {
    let plain = opened(&desk.at, &desk.at.join(format!("{name}.html")));
    // A request that the policy refuses is logged, so a page that logs nothing asked for nothing.
    assert_eq!(logged(&plain), Vec::<String>::new(), "{name}");
    let all = shown(&desk.at, name, axe);
    let mut widths: Vec<u64> = all.iter().filter_map(|of| of["width"].as_u64()).collect();
    widths.sort_unstable();
    assert_eq!(widths, WIDTHS, "{name}: {all:?}");
    for of in &all {
        assert!(of["rules"].as_u64() > Some(10), "{name}: {of}");
        assert_eq!(of["wide"], false, "{name} is wider than its screen: {of}");
        for key in ["axe", "untold", "told", "off", "cut"] {
            let found = of[key].as_array().unwrap();
            assert!(found.is_empty(), "{name}, {key}: {of}");
        }
    }
}
