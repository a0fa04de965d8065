//! A private folder for as long as one command works in it.

use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use clover_ground::ambient;
use clover_ground::ambient::Ambient;
use clover_ground::ambient::AmbientError;
use clover_ground::ambient::FileLock;
use clover_ground::digest::Digest;

use crate::home::Home;

/// Begin the names of ledgers that are being made beside the place where they are to stand.
const ASIDE: [&str; 2] = [".clover.restore-", ".clover.import-"];
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

/// What a ledger is made of, while it stands beside its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsideKind {
    /// A backup.
    Restore,
    /// An export.
    Import,
}

/// A ledger that is being made beside the place where it is to stand, with its keys. Unless it is placed, it is gone when it is
/// dropped; what a stopped process left is removed by the next that makes one there.
#[derive(Debug)]
pub(crate) struct Aside {
    stage: Home,
    into: PathBuf,
    is_new: bool,
    is_placed: bool,
    _lock: FileLock,
}

impl Drop for Aside {
    fn drop(&mut self) {
        if self.is_placed {
            return;
        }
        // What cannot be removed now is named by doctor, and removed by the next.
        ambient::remove_tree(self.stage.folder()).ok();
        if self.is_new {
            ambient::remove_empty(&self.into).ok();
        }
    }
}

impl Aside {
    /// A private folder in `into`, once what stopped processes left there is gone.
    ///
    /// # Errors
    /// What files say.
    pub(crate) fn new(
        ambient: &Ambient,
        into: &Path,
        kind: AsideKind,
    ) -> Result<Self, AmbientError> {
        let is_new = !ambient::exists(into)?;
        sweep(into)?;
        let random = Digest::blake3(&ambient.random::<16>()?).to_hex();
        let [restore, import] = ASIDE;
        let begin = match kind {
            AsideKind::Restore => restore,
            AsideKind::Import => import,
        };
        let folder = into.join(format!("{begin}{}", &random[..16]));
        ambient::create_private_dirs(&folder)?;
        let lock = ambient::lock_folder(&folder, LOCK_WAIT)?;
        Ok(Self {
            stage: Home::new(folder),
            into: into.to_owned(),
            is_new,
            is_placed: false,
            _lock: lock,
        })
    }

    /// The ledger's folder as long as it stands beside its place.
    pub(crate) fn home(&self) -> &Home {
        &self.stage
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// What files say; then it is gone.
    pub(crate) fn place(mut self, home: &Home) -> Result<(), AmbientError> {
        ambient::rename(self.stage.folder(), home.folder())?;
        self.is_placed = true;
        Ok(())
    }
}

/// Folders that stopped processes left in `into` while they made a ledger there: their keys lie in plain text.
///
/// # Errors
/// What files say.
pub fn left_in(into: &Path) -> Result<Vec<PathBuf>, AmbientError> {
    let is_aside = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| ASIDE.iter().any(|begin| name.starts_with(begin)))
    };
    let mut left = Vec::new();
    for folder in ambient::list(into)?.into_iter().filter(is_aside) {
        match ambient::lock_folder(&folder, Duration::ZERO) {
            Ok(_) => left.push(folder),
            // Somebody works there.
            Err(AmbientError::Locked { .. } | AmbientError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(left)
}

/// Removes what stopped processes left in `into` while they made a ledger there.
///
/// # Errors
/// What files say.
pub fn sweep(into: &Path) -> Result<(), AmbientError> {
    for folder in left_in(into)? {
        ambient::remove_tree(&folder)?;
    }
    Ok(())
}
