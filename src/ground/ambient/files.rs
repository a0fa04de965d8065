//! Files: read, written, replaced, locked; regular ones alone.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this module is the door that the lint guards"
)]

use std::fs;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::BufWriter;
use std::io::Read;
use std::io::Seek;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use crate::ambient::Ambient;
use crate::ambient::AmbientError;
use crate::ambient::stdin;
/// Whether something stands at `path`.
///
/// # Errors
/// [`AmbientError::Io`] when that cannot be told.
pub fn exists(path: &Path) -> Result<bool, AmbientError> {
    match path.try_exists() {
        // Nothing stands below a file.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        other => other.map_err(|source| AmbientError::io("look for", path, source)),
    }
}

/// Whether anything has the name `path`, a link to nothing too.
pub fn is_taken(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Whether a symbolic link stands at `path`, wherever it leads.
pub fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink())
}

/// What stands at `path` when it is no regular file; links are followed. `None` also where nothing stands.
pub fn irregular(path: &Path) -> Option<&'static str> {
    let kind = fs::metadata(path).ok()?.file_type();
    match kind {
        _ if kind.is_file() => None,
        _ if kind.is_dir() => Some("a folder"),
        _ if kind.is_fifo() => Some("a named pipe"),
        _ if kind.is_socket() => Some("a socket"),
        _ => Some("a device"),
    }
}

/// Refuses what is no regular file before it is opened: a named pipe would wait for its other end, and a device
/// may never end.
fn regular(path: &Path) -> Result<(), AmbientError> {
    match irregular(path) {
        None => Ok(()),
        Some(found) => Err(AmbientError::NotAFile {
            path: path.to_owned(),
            found,
        }),
    }
}

/// As [`regular`], for what is read once from its beginning. A pipe that a shell opened already, as for `<(…)`,
/// has another end and is let through.
fn readable(path: &Path) -> Result<(), AmbientError> {
    match regular(path) {
        Err(AmbientError::NotAFile {
            found: "a named pipe",
            ..
        }) if is_descriptor(path) => Ok(()),
        other => other,
    }
}

/// Whether a path names a descriptor that this process was given open.
fn is_descriptor(path: &Path) -> bool {
    let folders = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("/dev/stdin") || folders.iter().any(|folder| path.starts_with(folder))
}

/// The whole file.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::NotAFile`], [`AmbientError::Io`].
pub fn read(path: &Path) -> Result<Vec<u8>, AmbientError> {
    readable(path)?;
    fs::read(path).map_err(|source| AmbientError::io("read", path, source))
}

/// The whole file, refused when others may read it.
///
/// # Errors
/// [`AmbientError::TooOpen`] and as [`read`].
pub fn read_secret(path: &Path) -> Result<Vec<u8>, AmbientError> {
    readable(path)?;
    let meta = fs::metadata(path).map_err(|source| AmbientError::io("read", path, source))?;
    let mode = meta.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(AmbientError::TooOpen {
            path: path.to_owned(),
            mode,
        });
    }
    read(path)
}

/// A buffered reader of a file, or of standard input for `-`.
///
/// # Errors
/// As [`read`].
pub fn reader(path: &Path) -> Result<Box<dyn BufRead + Send>, AmbientError> {
    if path == Path::new("-") {
        return Ok(stdin());
    }
    readable(path)?;
    let file = fs::File::open(path).map_err(|source| AmbientError::io("read", path, source))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// A file that is read at places.
pub trait ReadPlaces: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadPlaces for T {}

/// A buffered reader of a file that can be read at places.
///
/// # Errors
/// As [`read`].
pub fn places(path: &Path) -> Result<Box<dyn ReadPlaces>, AmbientError> {
    readable(path)?;
    let file = fs::File::open(path).map_err(|source| AmbientError::io("read", path, source))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

/// Bytes in the file at `path`.
///
/// # Errors
/// As [`read`].
pub fn size(path: &Path) -> Result<u64, AmbientError> {
    Ok(fs::metadata(path)
        .map_err(|source| AmbientError::io("read", path, source))?
        .len())
}

/// Permission bits of a file that others may read and nobody else may write, whatever the umask allows.
const PUBLIC_MODE: u32 = 0o644;
/// Permission bits of a file that its owner alone may read.
const PRIVATE_MODE: u32 = 0o600;

/// A buffered writer to a new or truncated file.
///
/// # Errors
/// [`AmbientError::Io`].
pub fn writer(path: &Path) -> Result<Box<dyn Write + Send>, AmbientError> {
    regular(path)?;
    let opened = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PUBLIC_MODE)
        .open(path);
    let file = opened.map_err(|source| AmbientError::io("write", path, source))?;
    Ok(Box::new(BufWriter::with_capacity(1 << 16, file)))
}

/// Creates the folder and its parents.
///
/// # Errors
/// [`AmbientError::Io`].
pub fn create_dirs(path: &Path) -> Result<(), AmbientError> {
    fs::create_dir_all(path).map_err(|source| AmbientError::io("create", path, source))
}

/// Creates the folder and its parents, readable by its owner alone when it is new.
///
/// # Errors
/// [`AmbientError::Io`].
pub fn create_private_dirs(path: &Path) -> Result<(), AmbientError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| AmbientError::io("create", path, source))
}

/// The permission bits of a file or folder.
///
/// # Errors
/// As [`read`].
pub fn mode(path: &Path) -> Result<u32, AmbientError> {
    let meta = fs::metadata(path).map_err(|source| AmbientError::io("read", path, source))?;
    Ok(meta.permissions().mode() & 0o777)
}

/// Sets the permission bits of a file.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn set_mode(path: &Path, mode: u32) -> Result<(), AmbientError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(|source| AmbientError::io("change the mode of", path, source))
}

/// Whether the file could be written, found by opening it without writing.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`] with the system's reason.
pub fn check_writable(path: &Path) -> Result<(), AmbientError> {
    let opened = fs::OpenOptions::new().append(true).open(path);
    opened
        .map(drop)
        .map_err(|source| AmbientError::io("write", path, source))
}

/// Whether a file stands at `path`.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Whether a folder stands at `path`.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Overwrites bytes of an existing file in place; for showing what tampering looks like.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn overwrite(path: &Path, offset: u64, bytes: &[u8]) -> Result<(), AmbientError> {
    let io = |source| AmbientError::io("write", path, source);
    let file = fs::OpenOptions::new().write(true).open(path).map_err(io)?;
    file.write_all_at(bytes, offset).map_err(io)?;
    file.sync_all().map_err(io)
}

/// Renames a file over another and syncs the folder.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn rename(from: &Path, to: &Path) -> Result<(), AmbientError> {
    fs::rename(from, to).map_err(|source| AmbientError::io("rename", from, source))?;
    sync_parent(to)
}

/// Removes a folder and everything in it.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn remove_tree(path: &Path) -> Result<(), AmbientError> {
    fs::remove_dir_all(path).map_err(|source| AmbientError::io("remove", path, source))
}

/// Removes a folder that holds nothing.
///
/// # Errors
/// [`AmbientError::Io`], where it holds something too.
pub fn remove_empty(path: &Path) -> Result<(), AmbientError> {
    fs::remove_dir(path).map_err(|source| AmbientError::io("remove", path, source))
}

/// The system's folder for what may be lost.
pub fn temporary_folder() -> PathBuf {
    std::env::temp_dir()
}

/// Creates a file that must not exist yet, with permission bits `mode`, and syncs it to disk.
///
/// # Errors
/// [`AmbientError::Exists`], [`AmbientError::Io`].
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AmbientError> {
    let io = |source| AmbientError::io("create", path, source);
    // It is whole under another name before it has its own: a process that is stopped leaves no half of it.
    let temporary = unfinished(path);
    fs::remove_file(&temporary).ok();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .map_err(io)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| fs::hard_link(&temporary, path));
    fs::remove_file(&temporary).ok();
    linked.map_err(io)?;
    sync_parent(path)
}

/// A file that must not exist yet and that its owner alone may read, written piece by piece. It has its name once it is whole:
/// what is dropped before leaves nothing.
pub struct NewPrivateFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: BufWriter<fs::File>,
}

impl NewPrivateFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`AmbientError::Exists`], [`AmbientError::Io`].
    pub fn create(path: &Path) -> Result<Self, AmbientError> {
        let io = |source| AmbientError::io("create", path, source);
        if path.symlink_metadata().is_ok() {
            return Err(io(io::ErrorKind::AlreadyExists.into()));
        }
        let temporary = unfinished(path);
        fs::remove_file(&temporary).ok();
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE_MODE)
            .open(&temporary)
            .map_err(io)?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            writer: BufWriter::with_capacity(1 << 16, file),
        })
    }

    /// Writes the next piece.
    ///
    /// # Errors
    /// [`AmbientError::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), AmbientError> {
        let written = self.writer.write_all(bytes);
        written.map_err(|source| AmbientError::io("write", &self.path, source))
    }

    /// Syncs it, and gives it its name.
    ///
    /// # Errors
    /// [`AmbientError::Exists`], [`AmbientError::Io`].
    pub fn finish(mut self) -> Result<(), AmbientError> {
        let io = |source| AmbientError::io("create", &self.path, source);
        let flushed = self.writer.flush();
        let synced = flushed.and_then(|()| self.writer.get_ref().sync_all());
        let linked = synced.and_then(|()| fs::hard_link(&self.temporary, &self.path));
        linked.map_err(io)?;
        sync_parent(&self.path)
    }
}

impl Drop for NewPrivateFile {
    fn drop(&mut self) {
        fs::remove_file(&self.temporary).ok();
    }
}

/// Replaces a file by writing a sibling and renaming it; readers see the old or the new, never a mix.
/// With `durable`, file and folder are synced; without, a crash may bring the old one back.
///
/// # Errors
/// [`AmbientError::NotAFile`] when a folder, a pipe or a device stands there, [`AmbientError::Io`].
pub fn replace(path: &Path, bytes: &[u8], durable: bool) -> Result<(), AmbientError> {
    replace_with(path, bytes, durable, PUBLIC_MODE)
}

/// As [`replace`], readable by its owner alone.
///
/// # Errors
/// As [`replace`].
pub fn replace_private(path: &Path, bytes: &[u8], durable: bool) -> Result<(), AmbientError> {
    replace_with(path, bytes, durable, PRIVATE_MODE)
}

/// Ends the names that [`unfinished`] gives.
pub const UNFINISHED: &str = ".new";

/// The name beside `path` under which this process makes what is to stand there.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}{UNFINISHED}", std::process::id()));
    PathBuf::from(name)
}

fn replace_with(path: &Path, bytes: &[u8], durable: bool, mode: u32) -> Result<(), AmbientError> {
    regular(path)?;
    let temporary = unfinished(path);
    let io = |source| AmbientError::io("write", &temporary, source);
    // What a stopped process of this number left would keep its own permission bits.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .map_err(io)?;
    file.write_all(bytes).map_err(io)?;
    if durable {
        file.sync_all().map_err(io)?;
    }
    drop(file);
    fs::rename(&temporary, path).map_err(|source| AmbientError::io("replace", path, source))?;
    if durable { sync_parent(path) } else { Ok(()) }
}

fn sync_parent(path: &Path) -> Result<(), AmbientError> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let io = |source| AmbientError::io("sync", parent, source);
    fs::File::open(parent).map_err(io)?.sync_all().map_err(io)
}

/// Copies a file byte for byte.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn copy(from: &Path, to: &Path) -> Result<(), AmbientError> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|source| AmbientError::io("copy", from, source))
}

/// Removes a file.
///
/// # Errors
/// [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn remove(path: &Path) -> Result<(), AmbientError> {
    fs::remove_file(path).map_err(|source| AmbientError::io("remove", path, source))
}

/// The names in a folder, sorted; empty when the folder does not exist.
///
/// # Errors
/// [`AmbientError::Io`].
pub fn list(path: &Path) -> Result<Vec<PathBuf>, AmbientError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|source| AmbientError::io("list", path, source))?,
    };
    let names: Result<Vec<_>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut names = names.map_err(|source| AmbientError::io("list", path, source))?;
    names.sort();
    Ok(names)
}

/// Time between two tries for a lock.
const LOCK_STEP: Duration = Duration::from_millis(10);

/// Held until dropped; other processes wait.
#[derive(Debug)]
pub struct FileLock {
    file: fs::File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file releases the lock even when this fails.
        self.file.unlock().ok();
    }
}

/// Takes the lock file at `path`, waiting for others up to `limit`.
///
/// # Errors
/// [`AmbientError::Locked`], [`AmbientError::NotAFile`], [`AmbientError::Io`].
pub fn lock(path: &Path, limit: Duration) -> Result<FileLock, AmbientError> {
    let io = |source| AmbientError::io("lock", path, source);
    regular(path)?;
    let file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(io)?;
    locked(file, path, limit)
}

/// Takes a folder as [`lock`] takes a file. Nothing is written in it, and the lock goes along where it is renamed.
///
/// # Errors
/// [`AmbientError::Locked`], [`AmbientError::NotFound`], [`AmbientError::Io`].
pub fn lock_folder(path: &Path, limit: Duration) -> Result<FileLock, AmbientError> {
    let file = fs::File::open(path).map_err(|source| AmbientError::io("lock", path, source))?;
    locked(file, path, limit)
}

fn locked(file: fs::File, path: &Path, limit: Duration) -> Result<FileLock, AmbientError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { file }),
            Err(fs::TryLockError::Error(source)) => {
                return Err(AmbientError::io("lock", path, source));
            }
            Err(fs::TryLockError::WouldBlock) if start.elapsed() >= limit => {
                return Err(AmbientError::Locked {
                    path: path.to_owned(),
                    waited: limit,
                });
            }
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_STEP),
        }
    }
}

/// Names that a scratch file tries before it gives up.
const SCRATCH_TRIES: u32 = 64;

/// An unnamed scratch file: removed from its folder at once, gone when dropped.
#[derive(Debug)]
pub struct Scratch {
    file: fs::File,
    path: PathBuf,
}

impl Scratch {
    /// Creates one in the system's temporary folder.
    ///
    /// # Errors
    /// [`AmbientError::Io`].
    pub fn new(ambient: &Ambient) -> Result<Self, AmbientError> {
        // Two with one seed draw one name; the other's is gone from the folder in a moment.
        for _ in 1..SCRATCH_TRIES {
            match Self::named(u64::from_be_bytes(ambient.random()?)) {
                Err(AmbientError::Exists(_)) => std::thread::yield_now(),
                other => return other,
            }
        }
        Self::named(u64::from_be_bytes(ambient.random()?))
    }

    fn named(name: u64) -> Result<Self, AmbientError> {
        let path = std::env::temp_dir().join(format!("clover-{name:016x}"));
        let io = |source| AmbientError::io("create", &path, source);
        let file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        fs::remove_file(&path).map_err(io)?;
        Ok(Self { file, path })
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// [`AmbientError::Io`], a full disk included.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), AmbientError> {
        self.file
            .write_all(bytes)
            .map_err(|source| AmbientError::io("write", &self.path, source))
    }

    /// Reads at `offset` until `out` is full or the file ends; returns the bytes read.
    ///
    /// # Errors
    /// [`AmbientError::Io`].
    pub fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, AmbientError> {
        let io = |source| AmbientError::io("read", &self.path, source);
        self.file.seek(io::SeekFrom::Start(offset)).map_err(io)?;
        let mut done = 0;
        while done < out.len() {
            match self.file.read(&mut out[done..]).map_err(io)? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let folder = std::env::temp_dir().join(format!("clover-ambient-{}", std::process::id()));
        create_dirs(&folder).unwrap();
        let path = folder.join("key");
        write_new(&path, b"secret", 0o600).unwrap();
        assert_eq!(read_secret(&path).unwrap(), b"secret");
        assert!(matches!(
            write_new(&path, b"again", 0o600),
            Err(AmbientError::Exists(_))
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            read_secret(&path),
            Err(AmbientError::TooOpen { mode: 0o644, .. })
        ));
        assert!(matches!(
            read_secret(&folder.join("none")),
            Err(AmbientError::NotFound(_))
        ));
        fs::remove_dir_all(&folder).unwrap();
    }

    /// What others than the owner may do is bounded by the mode asked for; no umask widens it.
    #[test]
    fn private_files_are_private_and_only_regular_ones_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (private, public) = (folder.path().join("private"), folder.path().join("public"));
        replace(&private, b"old", false).unwrap();
        replace_private(&private, b"new", false).unwrap();
        replace(&public, b"all", false).unwrap();
        assert_eq!(mode(&private).unwrap() & !0o600, 0);
        assert_eq!(mode(&public).unwrap() & !0o644, 0);
        assert_eq!(read(&private).unwrap(), b"new");
        let zero = Path::new("/dev/zero");
        for (path, what) in [(folder.path(), "a folder"), (zero, "a device")] {
            let refusals = [
                read(path).map(drop),
                read_secret(path).map(drop),
                reader(path).map(drop),
                writer(path).map(drop),
                replace(path, b"", false),
                lock(path, Duration::ZERO).map(drop),
            ];
            for refused in refusals {
                let found = match &refused {
                    Err(AmbientError::NotAFile { found, .. }) => found,
                    other => panic!("{other:?}"),
                };
                assert_eq!(*found, what);
            }
        }
    }

    #[test]
    fn a_lock_that_another_holds_is_waited_for_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = lock(&path, Duration::ZERO).unwrap();
        let refused = lock(&path, Duration::from_millis(30)).unwrap_err();
        assert!(matches!(refused, AmbientError::Locked { .. }), "{refused}");
        drop(held);
        drop(lock(&path, Duration::ZERO).unwrap());
    }

    #[test]
    fn the_lock_of_a_folder_goes_along_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        create_dirs(&from).unwrap();
        let held = lock_folder(&from, Duration::ZERO).unwrap();
        rename(&from, &to).unwrap();
        let refused = lock_folder(&to, Duration::ZERO).unwrap_err();
        assert!(matches!(refused, AmbientError::Locked { .. }), "{refused}");
        drop(held);
        drop(lock_folder(&to, Duration::ZERO).unwrap());
        assert_eq!(list(&to).unwrap(), Vec::<PathBuf>::new());
    }
}
