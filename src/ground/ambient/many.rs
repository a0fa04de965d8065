//! Many new files of one folder: as durable as one by one, with far fewer waits for the disk.

use std::fs;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::path::PathBuf;
use std::thread;

use super::AmbientError;
use super::files::unfinished;

/// Files that wait for the disk together; all are open, and some systems allow 256.
const BATCH: usize = 128;
/// Threads that wait: a file system commits what several ask for at once.
const WAITING: usize = 16;

/// New files of a folder. Each has its name once its bytes are on the disk; the folder is synced by [`NewFiles::finish`].
#[derive(Debug)]
pub struct NewFiles<'a> {
    folder: &'a Path,
    mode: u32,
    batch: Vec<NewFile>,
}

/// A file that was written under another name.
#[derive(Debug)]
struct NewFile {
    bytes: File,
    temporary: PathBuf,
    path: PathBuf,
}

impl<'a> NewFiles<'a> {
    /// Files in a folder that is there, with permission bits `mode`.
    pub fn in_folder(folder: &'a Path, mode: u32) -> Self {
        Self {
            folder,
            mode,
            batch: Vec::new(),
        }
    }

    /// Adds a file that must not exist yet.
    ///
    /// # Errors
    /// [`AmbientError::Exists`] and [`AmbientError::Io`], of this file or of one before it.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<(), AmbientError> {
        let path = self.folder.join(name);
        let temporary = unfinished(&path);
        let io = |source| AmbientError::io("create", &path, source);
        fs::remove_file(&temporary).ok();
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(self.mode)
            .open(&temporary)
            .map_err(io)?;
        let written = file.write_all(bytes);
        self.batch.push(NewFile {
            bytes: file,
            temporary,
            path: path.clone(),
        });
        written.map_err(io)?;
        if self.batch.len() == BATCH {
            self.place()?;
        }
        Ok(())
    }

    /// Waits until every file and the folder are on the disk.
    ///
    /// # Errors
    /// As [`NewFiles::add`].
    pub fn finish(mut self) -> Result<(), AmbientError> {
        self.place()?;
        let io = |source| AmbientError::io("sync", self.folder, source);
        File::open(self.folder).map_err(io)?.sync_all().map_err(io)
    }

    /// Gives the files of the batch their names, once their bytes are on the disk.
    fn place(&mut self) -> Result<(), AmbientError> {
        let part = self.batch.len().div_ceil(WAITING).max(1);
        let waited = thread::scope(|scope| {
            let parts = self.batch.chunks(part);
            let threads: Vec<_> = parts
                .map(|part| {
                    scope.spawn(|| {
                        part.iter().try_for_each(|file| {
                            let synced = file.bytes.sync_all();
                            synced.map_err(|source| AmbientError::io("create", &file.path, source))
                        })
                    })
                })
                .collect();
            let each = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .expect("BUG: who waits for the disk does not panic")
            });
            each.collect::<Result<(), AmbientError>>()
        });
        waited?;
        let mut placed = Ok(());
        for file in self.batch.drain(..) {
            if placed.is_ok() {
                let linked = fs::hard_link(&file.temporary, &file.path);
                placed = linked.map_err(|source| AmbientError::io("create", &file.path, source));
            }
            fs::remove_file(&file.temporary).ok();
        }
        placed
    }
}

impl Drop for NewFiles<'_> {
    fn drop(&mut self) {
        for file in &self.batch {
            fs::remove_file(&file.temporary).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_its_name_and_bytes_and_none_is_left_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = NewFiles::in_folder(folder.path(), 0o644);
        for number in 0..BATCH + 3 {
            files
                .add(&number.to_string(), number.to_string().as_bytes())
                .unwrap();
        }
        files.finish().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), BATCH + 3);
        for number in [0, BATCH - 1, BATCH, BATCH + 2] {
            let found = fs::read(folder.path().join(number.to_string())).unwrap();
            assert_eq!(found, number.to_string().as_bytes());
        }
    }

    #[test]
    fn a_name_that_is_taken_is_refused_and_its_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), b"first").unwrap();
        let mut files = NewFiles::in_folder(folder.path(), 0o644);
        files.add("a", b"second").unwrap();
        files.add("b", b"third").unwrap();
        assert!(matches!(files.finish(), Err(AmbientError::Exists(_))));
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = NewFiles::in_folder(folder.path(), 0o644);
        files.add("a", b"one").unwrap();
        drop(files);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
