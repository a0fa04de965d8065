//! The one form of archive that is read, so that no two programs find different files in it: the form that this program writes.
//!
//! Members stand one after the other from byte 0, in the order of the directory. Nothing stands between them, before the
//! directory, or after the record of its end. Every head is compared, byte by byte, with the one that this program would write.

use std::collections::BTreeSet;
use std::io;
use std::io::Read;
use std::io::SeekFrom;

use clover_ground::ambient::ReadPlaces;

/// Bytes of a directory that are read.
const DIRECTORY_MAX: u64 = 256 << 20;
/// Bytes of the record of the directory's end; of that of a large directory, with the record that finds it.
const END_LEN: u64 = 22;
const END_LARGE_LEN: u64 = 76;
/// Bytes of a head in the directory before the name.
const HEAD_LEN: usize = 46;
/// Versions that a reader needs (APPNOTE 4.4.3): of a stored member, a pressed one, and one with sizes in 64 bits.
const STORED: u16 = 10;
const PRESSED: u16 = 20;
const LARGE: u16 = 45;
/// Flags: sizes follow the bytes; the name is UTF-8.
const SIZES_FOLLOW: u16 = 1 << 3;
const UTF_8: u16 = 1 << 11;
/// The date of every member: 1 January 1980.
const DATE: u16 = 0x21;
/// Modes of a file and of a program, as Unix has them.
const MODES: [u32; 2] = [0o100_644 << 16, 0o100_755 << 16];
/// What stands in 32 bits for a value that takes more.
const BEYOND: u32 = u32::MAX;

/// A member as its head in the directory says it.
struct Member {
    name: String,
    is_large: bool,
    is_stored: bool,
    crc: u32,
    pressed: u64,
    size: u64,
    mode: u32,
}

/// Where the directory is, and how many members it has.
struct Directory {
    start: u64,
    size: u64,
    count: u64,
}

/// Names of the members, in their order.
///
/// # Errors
/// Where the archive cannot be read, or has another form; the error says which.
pub(super) fn names(file: &mut dyn ReadPlaces) -> io::Result<Vec<String>> {
    let len = file.seek(SeekFrom::End(0))?;
    let Directory { start, size, count } = directory(file, len)?;
    if size > DIRECTORY_MAX {
        return Err(other("a directory of at most 268435456 bytes"));
    }
    let mut heads = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    Read::take(&mut *file, size).read_to_end(&mut heads)?;
    let (mut rest, mut at) = (heads.as_slice(), 0_u64);
    let (mut names, mut met) = (Vec::new(), BTreeSet::new());
    for _ in 0..count {
        let member = Member::parse(rest).ok_or_else(|| other("heads of files in its directory"))?;
        let head = member.head(at);
        let name = member.name.clone();
        if !rest.starts_with(&head) {
            return Err(other(&format!("another head of {name} in its directory")));
        }
        rest = rest.get(head.len()..).unwrap_or_default();
        let local = member.local();
        let follows = member.follows();
        let data = at + local.len() as u64;
        let end = data.checked_add(member.pressed);
        let end = end.filter(|end| *end <= start);
        let end = end.ok_or_else(|| other(&format!("{name} within its bytes")))?;
        if !has(file, at, &local)? || !has(file, end, &follows)? {
            return Err(other(&format!("{name} as its directory describes it")));
        }
        at = end + follows.len() as u64;
        if !is_plain(&name) || !met.insert(name.clone()) {
            return Err(other(&format!("one file of each name, not {name:?}")));
        }
        names.push(name);
    }
    if !rest.is_empty() || at != start {
        return Err(other("files and their directory alone, with no gap"));
    }
    Ok(names)
}

/// Whether a name is that of a file inside: parts divided by `/`, none of which leads elsewhere, without control characters.
pub(super) fn is_plain(name: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    name.split('/').all(is_part) && !name.contains(|c: char| c == '\\' || c.is_ascii_control())
}

fn other(expected: &str) -> io::Error {
    let form = "not an archive as clover writes it";
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{form}: expected {expected}"),
    )
}

fn has(file: &mut dyn ReadPlaces, at: u64, expected: &[u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut found = Vec::with_capacity(expected.len());
    Read::take(file, expected.len() as u64).read_to_end(&mut found)?;
    Ok(found == expected)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..at + 2)?
        .try_into()
        .ok()
        .map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes
        .get(at..at + 4)?
        .try_into()
        .ok()
        .map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes
        .get(at..at + 8)?
        .try_into()
        .ok()
        .map(u64::from_le_bytes)
}

/// A value in 32 bits, or what stands for it there.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(BEYOND)
}

/// The one record of the end of the directory, which is the end of the archive.
fn directory(file: &mut dyn ReadPlaces, len: u64) -> io::Result<Directory> {
    let broken = || other("the record of its directory at its very end");
    let at = len.checked_sub(END_LEN).ok_or_else(broken)?;
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    Read::take(&mut *file, END_LEN).read_to_end(&mut end)?;
    let (Some(count), Some(size), Some(start)) =
        (u16_at(&end, 10), u32_at(&end, 12), u32_at(&end, 16))
    else {
        return Err(broken());
    };
    if size != BEYOND {
        let found = Directory {
            start: start.into(),
            size: size.into(),
            count: count.into(),
        };
        let is_last = found.start + found.size == at;
        return if is_last && end == found.end(false) {
            Ok(found)
        } else {
            Err(broken())
        };
    }
    let at = at.checked_sub(END_LARGE_LEN).ok_or_else(broken)?;
    let mut record = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    Read::take(&mut *file, END_LARGE_LEN).read_to_end(&mut record)?;
    let (Some(count), Some(size), Some(start)) = (
        u64_at(&record, 32),
        u64_at(&record, 40),
        u64_at(&record, 48),
    ) else {
        return Err(broken());
    };
    let is_large = count > u16::MAX.into() || start.max(size) > BEYOND.into();
    let found = Directory { start, size, count };
    let is_last = start.checked_add(size) == Some(at);
    if is_large && is_last && record == found.end_large() && end == found.end(true) {
        Ok(found)
    } else {
        Err(broken())
    }
}

impl Directory {
    /// The record of its end (APPNOTE 4.3.16).
    fn end(&self, is_large: bool) -> Vec<u8> {
        let mut out = b"PK\x05\x06\0\0\0\0".to_vec();
        let count = u16::try_from(self.count).unwrap_or(u16::MAX).to_le_bytes();
        out.extend([count, count].concat());
        let size = if is_large { BEYOND } else { narrow(self.size) };
        out.extend(size.to_le_bytes());
        out.extend(narrow(self.start).to_le_bytes());
        out.extend([0, 0]);
        out
    }

    /// The record of a large one, and that which finds it (APPNOTE 4.3.14, 4.3.15).
    fn end_large(&self) -> Vec<u8> {
        let mut out = b"PK\x06\x06".to_vec();
        out.extend(44_u64.to_le_bytes());
        out.extend([LARGE.to_le_bytes(), LARGE.to_le_bytes()].concat());
        out.extend([0; 8]);
        for value in [self.count, self.count, self.size, self.start] {
            out.extend(value.to_le_bytes());
        }
        out.extend(b"PK\x06\x07\0\0\0\0");
        out.extend((self.start.saturating_add(self.size)).to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out
    }
}

impl Member {
    /// What a head in the directory says; the rest of it is compared with [`Self::head`].
    fn parse(head: &[u8]) -> Option<Self> {
        let name_len = usize::from(u16_at(head, 28)?);
        let extra = head.get(HEAD_LEN + name_len..)?;
        let is_large = u16_at(head, 6)? == LARGE;
        let (pressed, size) = if is_large {
            (u64_at(extra, 12)?, u64_at(extra, 4)?)
        } else {
            let narrow = |at| u32_at(head, at).filter(|size| *size != BEYOND);
            (narrow(20)?.into(), narrow(24)?.into())
        };
        let name = head.get(HEAD_LEN..HEAD_LEN + name_len)?;
        Some(Self {
            name: String::from_utf8(name.to_vec()).ok()?,
            is_large,
            is_stored: u16_at(head, 10)? == 0,
            crc: u32_at(head, 16)?,
            pressed,
            size,
            mode: u32_at(head, 38).filter(|mode| MODES.contains(mode))?,
        })
    }

    /// What both heads begin with: version, flags, method and date.
    fn opening(&self) -> Vec<u8> {
        let needed = match (self.is_large, self.is_stored) {
            (true, _) => LARGE,
            (false, true) => STORED,
            (false, false) => PRESSED,
        };
        let flags = SIZES_FOLLOW | if self.name.is_ascii() { 0 } else { UTF_8 };
        let method = if self.is_stored { 0 } else { 8 };
        [needed, flags, method, 0, DATE]
            .map(u16::to_le_bytes)
            .concat()
    }

    fn name_len(&self) -> [u8; 2] {
        u16::try_from(self.name.len())
            .unwrap_or(u16::MAX)
            .to_le_bytes()
    }

    /// The head before its bytes (APPNOTE 4.3.7).
    fn local(&self) -> Vec<u8> {
        let extra: &[u8] = if self.is_large {
            &[1, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        } else {
            &[]
        };
        let len = if self.is_large { [20, 0] } else { [0, 0] };
        let opening = self.opening();
        let parts: [&[u8]; 7] = [
            b"PK\x03\x04",
            &opening,
            &[0; 12],
            &self.name_len(),
            &len,
            self.name.as_bytes(),
            extra,
        ];
        parts.concat()
    }

    /// What follows its bytes (APPNOTE 4.3.9).
    fn follows(&self) -> Vec<u8> {
        let mut out = b"PK\x07\x08".to_vec();
        out.extend(self.crc.to_le_bytes());
        for size in [self.pressed, self.size] {
            if self.is_large {
                out.extend(size.to_le_bytes());
            } else {
                out.extend(narrow(size).to_le_bytes());
            }
        }
        out
    }

    /// The head in the directory (APPNOTE 4.3.12) of a member whose own head is at `at`.
    fn head(&self, at: u64) -> Vec<u8> {
        let mut values = Vec::new();
        if self.is_large {
            values.extend(self.size.to_le_bytes());
            values.extend(self.pressed.to_le_bytes());
        }
        if at >= u64::from(BEYOND) {
            values.extend(at.to_le_bytes());
        }
        let mut extra = Vec::new();
        if let Some(len) = u16::try_from(values.len()).ok().filter(|len| *len > 0) {
            extra.extend([1_u16, len].map(u16::to_le_bytes).concat());
            extra.extend(values);
        }
        let opening = self.opening();
        let mut out = b"PK\x01\x02".to_vec();
        // Made on Unix, by the version that a reader needs.
        out.extend([opening[0], 3]);
        out.extend(&opening);
        out.extend(self.crc.to_le_bytes());
        for size in [self.pressed, self.size] {
            let size = if self.is_large { BEYOND } else { narrow(size) };
            out.extend(size.to_le_bytes());
        }
        out.extend(self.name_len());
        out.extend(u16::try_from(extra.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend([0; 6]);
        out.extend(self.mode.to_le_bytes());
        out.extend(narrow(at).to_le_bytes());
        out.extend(self.name.as_bytes());
        out.extend(extra);
        out
    }
}

/// Reads exactly the bytes that an archive says a member has; more or fewer are an error.
pub(super) struct ExactReader<R> {
    pub(super) inner: R,
    pub(super) left: u64,
}

impl<R: Read> Read for ExactReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wrong = |found| io::Error::new(io::ErrorKind::InvalidData, found);
        if self.left == 0 {
            // The digest of the archive is checked where the end is read.
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(wrong("more bytes than the archive says")),
            };
        }
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(out.len());
        let count = self.inner.read(&mut out[..most])?;
        if count == 0 && most > 0 {
            return Err(wrong("fewer bytes than the archive says"));
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use clover_ground::ambient;

    use super::super::sink::Sink;
    use super::*;

    /// The writer's own form is the one that is read: pressed and stored members, large ones, names beyond ASCII.
    #[test]
    fn what_the_sink_writes_is_read_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.zip");
        let mut sink = Sink::new(&path, true).unwrap();
        let files: [(&str, Vec<u8>); 3] = [
            ("entries.jsonl", b"lines".to_vec()),
            ("reports/\u{e9}.html", b"page".to_vec()),
            ("blobs/zeros", vec![0; 2 << 20]),
        ];
        for (name, bytes) in &files {
            sink.bytes(name, bytes).unwrap();
        }
        assert_eq!(sink.finish().unwrap(), 4);
        let read = names(ambient::places(&path).unwrap().as_mut()).unwrap();
        let mut expected: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        expected.push("SHA256SUMS");
        assert_eq!(read, expected);
        let whole = ambient::read(&path).unwrap();
        assert!(whole.len() > 2 << 20, "zeros are stored as they are");
        // Every byte before the first file's bytes, and every byte of the directory, is held.
        let directory = whole.len() - (4 * 46 + 49 + 20 + 22);
        for at in (0..30 + 13 + 20).chain(directory..whole.len()) {
            let mut other = whole.clone();
            other[at] ^= 1;
            let other_path = folder.path().join("b.zip");
            ambient::replace(&other_path, &other, false).unwrap();
            let read = names(ambient::places(&other_path).unwrap().as_mut());
            assert_ne!(
                read.ok(),
                Some(read_names(&expected)),
                "byte {at} of {}",
                whole.len()
            );
        }
    }

    fn read_names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}
