//! Lists what every bundle carries of this project: the independent verifier and the pages of the formats.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads the tree and the environment itself"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// Folders of the project, each with the folder of a bundle that it goes to, and the ending of its files.
const CARRIED: [(&str, &str, &str); 2] = [
    ("../../audits/verify", "verify", "py"),
    ("../../schema", "schema", "md"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let mut list = String::from("pub(super) static CARRIED: &[(&str, &[u8])] = &[\n");
    for (folder, target, ending) in CARRIED {
        let folder = root.join(folder).canonicalize()?;
        println!("cargo:rerun-if-changed={}", folder.display());
        let mut found = Vec::new();
        files(&folder, ending, &mut found)?;
        found.sort();
        for path in found {
            let name = path.strip_prefix(&folder)?.display();
            writeln!(
                list,
                "    (\"{target}/{name}\", include_bytes!(r\"{}\")),",
                path.display()
            )?;
        }
    }
    list.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    fs::write(out.join("carried.rs"), list)?;
    Ok(())
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, ending, found)?;
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
    Ok(())
}
