//! Where an export is written until it is whole: a folder inside its target. Whatever stops the writer, nothing short stands
//! under a final name, and the next export into the target removes what was left.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;

use crate::ExportError;

/// The folder inside the target.
const STAGE: &str = ".export.part";
/// Its folder of what is to stand in the target.
const FILES: &str = "files";
/// Its list of names that are being put in their places, a line each.
const PLACING: &str = "placing";
/// The name that is placed last: who finds it finds everything.
const LAST: &str = "checkpoint";

/// An export that is being written. Dropped before it is placed, it leaves nothing.
pub(super) struct Stage<'a> {
    target: &'a Path,
    is_new: bool,
    is_placed: bool,
    _lock: FileLock,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next export.
        ambient::remove_tree(&self.target.join(STAGE)).ok();
        if self.is_new && !self.is_placed {
            ambient::remove_empty(self.target).ok();
        }
    }
}

impl<'a> Stage<'a> {
    /// A stage in a target where none of these names stands, once what a stopped export left is gone.
    ///
    /// # Errors
    /// [`ExportError::Occupied`] where something stands there, and what files say: also that another export is under way.
    pub(super) fn new(target: &'a Path, names: &[&str]) -> Result<Self, ExportError> {
        let is_new = !ambient::exists(target)?;
        let folder = target.join(STAGE);
        let is_left = ambient::exists(&folder)?;
        ambient::create_dirs(&folder)?;
        let stage = Self {
            target,
            is_new,
            is_placed: false,
            _lock: ambient::lock_folder(&folder, Duration::ZERO)?,
        };
        if is_left {
            stage.sweep()?;
        }
        for name in names {
            let path = target.join(name);
            if ambient::exists(&path)? {
                return Err(ExportError::Occupied(path));
            }
        }
        ambient::create_dirs(&stage.folder())?;
        Ok(stage)
    }

    /// Where files are written.
    pub(super) fn folder(&self) -> PathBuf {
        self.target.join(STAGE).join(FILES)
    }

    /// Removes what a stopped export wrote, and what it had placed already. Where its last name is placed it was done.
    fn sweep(&self) -> Result<(), AmbientError> {
        let (files, placing) = (self.folder(), self.target.join(STAGE).join(PLACING));
        let list = match ambient::read(&placing) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(AmbientError::NotFound(_)) => String::new(),
            Err(error) => return Err(error),
        };
        let is_under_way = ambient::exists(&files.join(LAST))?;
        for name in list.lines().filter(|_| is_under_way) {
            let place = self.target.join(name);
            if ambient::exists(&files.join(name))? || !ambient::exists(&place)? {
                continue;
            }
            if ambient::is_dir(&place) {
                ambient::remove_tree(&place)?;
            } else {
                ambient::remove(&place)?;
            }
        }
        if !list.is_empty() {
            ambient::remove(&placing)?;
        }
        if ambient::exists(&files)? {
            ambient::remove_tree(&files)?;
        }
        Ok(())
    }

    /// Puts everything in its place, the checkpoint last.
    ///
    /// # Errors
    /// What files say.
    pub(super) fn place(mut self) -> Result<(), ExportError> {
        let folder = self.folder();
        let names = ambient::list(&folder)?;
        let names = names.iter().filter_map(|path| path.file_name()?.to_str());
        let mut names: Vec<&str> = names.filter(|name| *name != LAST).collect();
        names.push(LAST);
        let list = names.join("\n");
        ambient::write_new(
            &self.target.join(STAGE).join(PLACING),
            list.as_bytes(),
            0o644,
        )?;
        for name in names {
            ambient::rename(&folder.join(name), &self.target.join(name))?;
        }
        self.is_placed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["ledger.jsonl", "checkpoint", "blobs"];

    fn names(folder: &Path) -> Vec<String> {
        let all = ambient::list(folder).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.iter().map(name).collect()
    }

    fn written(target: &Path) -> Stage<'_> {
        let stage = Stage::new(target, &NAMES).unwrap();
        let folder = stage.folder();
        ambient::create_dirs(&folder.join("blobs")).unwrap();
        for name in ["ledger.jsonl", "checkpoint", "blobs/one"] {
            ambient::write_new(&folder.join(name), b"whole", 0o644).unwrap();
        }
        stage
    }

    /// The writer stops after each step: no step leaves a short file, and the next export stands as if nothing had been.
    #[test]
    fn a_writer_that_stops_anywhere_is_swept_by_the_next_one() {
        for placed in 0..=NAMES.len() {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("export");
            let stage = written(&target);
            let files = stage.folder();
            if placed > 0 {
                let list = target.join(STAGE).join(PLACING);
                ambient::write_new(&list, b"blobs\nledger.jsonl\ncheckpoint", 0o644).unwrap();
            }
            for name in ["blobs", "ledger.jsonl", "checkpoint"].iter().take(placed) {
                ambient::rename(&files.join(name), &target.join(name)).unwrap();
            }
            // A process that is killed drops nothing, and its lock is gone.
            let kept = folder.path().join("kept");
            ambient::rename(&target, &kept).unwrap();
            drop(stage);
            ambient::rename(&kept, &target).unwrap();
            if placed == NAMES.len() {
                let refused = Stage::new(&target, &NAMES).map(drop).unwrap_err();
                assert!(matches!(refused, ExportError::Occupied(_)), "{refused}");
            } else {
                written(&target).place().unwrap();
            }
            assert_eq!(names(&target), ["blobs", "checkpoint", "ledger.jsonl"]);
        }
    }

    #[test]
    fn what_is_not_placed_leaves_nothing_and_what_stands_there_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        drop(written(&target));
        assert!(!ambient::exists(&target).unwrap());
        ambient::create_dirs(&target).unwrap();
        ambient::write_new(&target.join("ledger.jsonl"), b"mine", 0o644).unwrap();
        let refused = Stage::new(&target, &NAMES).map(drop).unwrap_err();
        assert!(matches!(refused, ExportError::Occupied(_)), "{refused}");
        assert_eq!(names(&target), ["ledger.jsonl"]);
    }

    #[test]
    fn two_exports_at_once_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let first = written(&target);
        let refused = Stage::new(&target, &NAMES).map(drop).unwrap_err();
        assert!(matches!(
            refused,
            ExportError::Ambient(AmbientError::Locked { .. })
        ));
        first.place().unwrap();
        assert_eq!(names(&target), ["blobs", "checkpoint", "ledger.jsonl"]);
    }
}
