//! Archives that others packed: members by name, unpacked into memory within bounds, and never written anywhere.

use std::io::Cursor;
use std::io::Read as _;

use zip::CompressionMethod;
use zip::ZipArchive;

/// Most members of an archive.
pub const MEMBERS_MAX: usize = 1_000_000;
/// Most bytes of one member.
pub const MEMBER_MAX: u64 = 256 << 20;
/// Most bytes of all members that are read.
const TOTAL_MAX: u64 = 4 << 30;
/// A member above [`RATIO_FROM`] may be so many times as long as what it is packed into.
const RATIO_MAX: u64 = 1_000;
/// Bytes up to which nobody asks for a ratio.
const RATIO_FROM: u64 = 16 << 20;
/// Longest name of a member that is shown.
const NAME_SHOWN: usize = 60;

/// An archive.
pub(super) struct Archive<'a> {
    members: ZipArchive<Cursor<&'a [u8]>>,
    total: u64,
}

pub(super) fn shown(name: &str) -> String {
    let start: String = name.chars().take(NAME_SHOWN).collect();
    format!("{start:?}")
}

/// A name that leads nowhere but below its archive.
fn is_plain(name: &str) -> bool {
    let parts = || name.split(['/', '\\']);
    !name.starts_with(['/', '\\'])
        && !name.contains(['\0', ':'])
        && parts().all(|part| part != "..")
}

/// How many members the end of an archive says it has; `None` where it cannot tell.
fn said(bytes: &[u8]) -> Option<usize> {
    let end = memchr::memmem::rfind(bytes, b"PK\x05\x06")?;
    let count = bytes.get(end + 10..end + 12)?;
    let count = u16::from_le_bytes([count[0], count[1]]);
    (count != u16::MAX).then_some(usize::from(count))
}

impl<'a> Archive<'a> {
    /// Opens an archive. Line feeds behind its end are none of it.
    ///
    /// # Errors
    /// What is wrong with it: no archive, too many members, a name twice, or one that leads out of it.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, String> {
        let trimmed = bytes.trim_ascii_end();
        let members = ZipArchive::new(Cursor::new(bytes))
            .or_else(|_| ZipArchive::new(Cursor::new(trimmed)))
            .map_err(|error| format!("expected an archive: {error}"))?;
        if members.len() > MEMBERS_MAX {
            let found = members.len();
            return Err(format!(
                "expected at most {MEMBERS_MAX} members, found {found}"
            ));
        }
        if let Some(said) = said(trimmed).filter(|said| *said != members.len()) {
            let found = members.len();
            return Err(format!(
                "expected {said} members, as the end of the archive says, found {found}: a name is there twice"
            ));
        }
        for name in members.file_names_raw() {
            let name = String::from_utf8_lossy(name);
            if !is_plain(&name) {
                return Err(format!(
                    "expected names of members within the archive, found {}",
                    shown(&name)
                ));
            }
        }
        Ok(Self { members, total: 0 })
    }

    /// Members whose names begin with this.
    pub(super) fn under(&self, folder: &str) -> Vec<String> {
        let names = self.members.file_names_raw();
        let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
        names.filter(|name| name.starts_with(folder)).collect()
    }

    /// Whether a member is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.members.index_for_name(name).is_some()
    }

    /// The text of a member; `None` where it is missing.
    ///
    /// # Errors
    /// What is wrong with it: its packing, its length, or what it unpacks to.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(index) = self.members.index_for_name(name) else {
            return Ok(None);
        };
        let mut member = self
            .members
            .by_index_raw(index)
            .map_err(|error| format!("cannot read: {error}"))?;
        if member.encrypted() {
            return Err("expected a member that is not encrypted".to_owned());
        }
        let (method, said, crc) = (member.compression(), member.size(), member.crc32());
        let mut packed = Vec::new();
        member
            .read_to_end(&mut packed)
            .map_err(|error| format!("cannot read: {error}"))?;
        drop(member);
        let most = most(packed.len() as u64).min(TOTAL_MAX - self.total);
        let bounded = |said: u64| {
            if said > most {
                return Err(format!(
                    "expected at most {most} bytes of what is packed in {}, found {said} or more",
                    packed.len()
                ));
            }
            Ok(())
        };
        bounded(said)?;
        let bytes = unpacked(&packed, method, most)?;
        bounded(bytes.len() as u64)?;
        self.total += bytes.len() as u64;
        if bytes.len() as u64 != said || crc32(&bytes) != crc {
            return Err(
                "expected what its length and its checksum say, found other bytes".to_owned(),
            );
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to() + 1;
            format!("expected UTF-8, byte {at} is not")
        })?;
        Ok(Some(text))
    }
}

/// Most bytes that so many packed ones may unpack to.
fn most(packed: u64) -> u64 {
    RATIO_FROM
        .max(packed.saturating_mul(RATIO_MAX))
        .min(MEMBER_MAX)
}

/// Unpacks a member; what is longer than `most` is cut behind it.
fn unpacked(packed: &[u8], method: CompressionMethod, most: u64) -> Result<Vec<u8>, String> {
    let beyond = most.saturating_add(1);
    let mut bytes = Vec::new();
    match method {
        CompressionMethod::STORE => bytes.extend_from_slice(packed),
        CompressionMethod::DEFLATE => {
            let limit = usize::try_from(beyond).unwrap_or(usize::MAX);
            bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, limit)
                .map_err(|error| format!("cannot unpack: {error}"))?;
        }
        CompressionMethod::ZSTD => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed)
                .map_err(|error| format!("cannot unpack: {error}"))?;
            decoder
                .take(beyond)
                .read_to_end(&mut bytes)
                .map_err(|error| format!("cannot unpack: {error}"))?;
        }
        other => {
            return Err(format!(
                "expected a member that is stored, deflated or packed by zstd, found {other}"
            ));
        }
    }
    Ok(bytes)
}

/// The checksum of ZIP.
fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
