//! Where an export is written until it is whole: beside its target. Whatever stops the writer, nothing short stands under the
//! target's name, and the next export there removes what was left.

use std::path::Path;
use std::path::PathBuf;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;

use crate::ExportError;

/// Where the system lists its processes, if it does.
const PROCESSES: &str = "/proc";

/// Writes a file or folder beside `target`, and gives it that name when it is whole.
///
/// # Errors
/// [`ExportError::Occupied`] where something stands there that is no empty folder, and what `write` says.
pub(super) fn whole<T>(
    target: &Path,
    write: impl FnOnce(&Path) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    // Without the slash that a folder may end in.
    let target: PathBuf = target.components().collect();
    if ambient::is_taken(&target) && !is_empty_folder(&target)? {
        return Err(ExportError::Occupied(target));
    }
    sweep(&target)?;
    let stage = ambient::unfinished(&target);
    if let Some(parent) = target.parent() {
        ambient::create_dirs(parent)?;
    }
    let written = write(&stage).and_then(|said| {
        ambient::rename(&stage, &target)?;
        Ok(said)
    });
    if written.is_err() {
        // What failed is reported; what cannot be removed now is removed by the next export.
        remove(&stage).ok();
    }
    written
}

fn is_empty_folder(path: &Path) -> Result<bool, AmbientError> {
    Ok(ambient::is_dir(path) && ambient::list(path)?.is_empty())
}

fn remove(path: &Path) -> Result<(), AmbientError> {
    if ambient::is_dir(path) {
        ambient::remove_tree(path)
    } else {
        ambient::remove(path)
    }
}

/// Removes what processes that are no more left beside a target.
fn sweep(target: &Path) -> Result<(), AmbientError> {
    let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
        return Ok(());
    };
    let parent = if parent == Path::new("") {
        Path::new(".")
    } else {
        parent
    };
    if !ambient::is_dir(parent) || !ambient::is_dir(Path::new(PROCESSES)) {
        return Ok(());
    }
    for path in ambient::list(parent)? {
        let left = path.file_name().and_then(|left| left.to_str());
        let process = left
            .and_then(|left| left.strip_prefix(name.to_str()?)?.strip_prefix('.'))
            .and_then(|left| left.strip_suffix(ambient::UNFINISHED));
        let is_gone = process.is_some_and(|process| {
            let is_number = process.bytes().all(|byte| byte.is_ascii_digit());
            is_number && !ambient::is_dir(&Path::new(PROCESSES).join(process))
        });
        if is_gone {
            remove(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let all = ambient::list(folder).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.iter().map(name).collect()
    }

    fn export(target: &Path) -> Result<(), ExportError> {
        whole(target, |stage| {
            ambient::create_dirs(&stage.join("blobs"))?;
            ambient::write_new(&stage.join("checkpoint"), b"whole", 0o644)?;
            Ok(())
        })
    }

    #[test]
    fn what_a_stopped_process_left_is_swept_by_the_next_export() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        // No process has this number: Linux numbers end at 2^22.
        let left = folder.path().join("export.4194305.new");
        ambient::create_dirs(&left.join("blobs")).unwrap();
        let other = folder.path().join("export.old.new");
        ambient::create_dirs(&other).unwrap();
        export(&target).unwrap();
        assert_eq!(names(folder.path()), ["export", "export.old.new"]);
        assert_eq!(names(&target), ["blobs", "checkpoint"]);
    }

    #[test]
    fn what_fails_leaves_nothing_and_what_stands_there_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("export");
        let failed = whole(&target, |stage| {
            ambient::create_dirs(stage)?;
            Err::<(), _>(ExportError::Stream("tiles"))
        });
        assert!(matches!(failed, Err(ExportError::Stream(_))));
        assert!(names(folder.path()).is_empty());
        ambient::create_dirs(&target).unwrap();
        export(&folder.path().join("export/")).unwrap();
        let refused = export(&target).unwrap_err();
        assert!(matches!(refused, ExportError::Occupied(_)), "{refused}");
        assert_eq!(names(&target), ["blobs", "checkpoint"]);
    }
}
