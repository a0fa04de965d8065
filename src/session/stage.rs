//! A private folder for as long as one command works in it.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;

/// How long another command that works there is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(60);

/// A folder of this name beside its lock. Dropped, it is gone; what a stopped process left there is removed by the next.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    _lock: FileLock,
}

impl Drop for Stage {
    fn drop(&mut self) {
        // It is private, and the next to work here removes what is left.
        ambient::remove_tree(&self.folder).ok();
    }
}

impl Stage {
    /// The folder `name` in `parent`, empty, once nobody else works there.
    ///
    /// # Errors
    /// [`AmbientError::Locked`] after a minute, and what files say.
    pub fn new(parent: &Path, name: &str) -> Result<Self, AmbientError> {
        ambient::create_private_dirs(parent)?;
        let lock = ambient::lock(&parent.join(format!("{name}.lock")), LOCK_WAIT)?;
        let folder = parent.join(name);
        if ambient::exists(&folder)? {
            ambient::remove_tree(&folder)?;
        }
        ambient::create_private_dirs(&folder)?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
