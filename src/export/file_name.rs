//! Names as names of files: whatever a name holds, its file lies in the folder that it is written to.

use std::collections::BTreeSet;

use clover_ground::digest::Digest;
use clover_ground::name::is_unsafe;

/// Characters that some system gives a meaning of its own in a path, and the sign of an escape.
const ESCAPED: &str = "/\\:*?\"<>|%";

/// Bytes of a name of a file that hold whatever stands before and after it: systems allow 255.
const LEN_MAX: usize = 200;
/// What a digest follows in a name that is not written in full; [`encode`] writes it of no name itself.
const DIGEST_OPEN: &str = "%~";

/// A name as the name of a file: what could lead elsewhere is written as `%` and two hexadecimal digits. Of a longer one stands
/// the beginning, and a digest of the name; so it does of one with marks that nobody sees.
pub fn encode(name: &str) -> String {
    let out = escaped(name);
    if out.len() <= LEN_MAX && !out.contains(is_unsafe) {
        out
    } else {
        digested(name)
    }
}

/// Names of files in one folder, told apart also where a system takes capitals for small letters.
#[derive(Default)]
pub struct FolderNames(BTreeSet<String>);

impl FolderNames {
    /// The name of a file for the next name.
    pub fn encode(&mut self, name: &str) -> String {
        let own = encode(name);
        if self.0.insert(own.to_lowercase()) {
            return own;
        }
        let own = digested(name);
        self.0.insert(own.to_lowercase());
        own
    }
}

/// The beginning of a name, without what nobody sees, and the digest of all of it.
pub(crate) fn digested(name: &str) -> String {
    let mut out = escaped(name).replace(is_unsafe, "");
    let digest = Digest::blake3(name.as_bytes()).to_hex();
    let mut end = out.len().min(LEN_MAX - DIGEST_OPEN.len() - 16);
    while !out.is_char_boundary(end) {
        end -= 1;
    }
    out.truncate(end);
    // Not within an escape.
    let cut = out.rfind('%').filter(|at| out.len() - at < 3);
    out.truncate(cut.unwrap_or(out.len()));
    out.push_str(DIGEST_OPEN);
    out.push_str(&digest[..16]);
    out
}

fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (at, c) in name.char_indices() {
        let leads = at == 0 && c == '.';
        if leads || c.is_ascii_control() || ESCAPED.contains(c) {
            out.push_str(&format!("%{:02X}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// The name that [`encode`] wrote; `None` for what it writes of no name.
pub fn decode(file: &str) -> Option<String> {
    let mut out = String::with_capacity(file.len());
    let mut parts = file.split('%');
    out.push_str(parts.next()?);
    for part in parts {
        let code = u8::from_str_radix(part.get(..2)?, 16).ok()?;
        out.push(char::from(code));
        out.push_str(&part[2..]);
    }
    (encode(&out) == file).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_elsewhere() {
        for (name, file) in [
            ("base", "base"),
            ("openai/gpt-4o", "openai%2Fgpt-4o"),
            ("openai:gpt 4", "openai%3Agpt 4"),
            ("../../etc", "%2E.%2F..%2Fetc"),
            (".", "%2E"),
            ("50%", "50%25"),
            ("é.v2", "é.v2"),
        ] {
            assert_eq!(encode(name), file);
            assert_eq!(decode(file).as_deref(), Some(name));
        }
        let long = [
            "/".repeat(200),
            format!("{}a", "/".repeat(200)),
            "é".repeat(150),
        ];
        let files = long.clone().map(|name| encode(&name));
        for (name, file) in long.iter().zip(&files) {
            assert!(
                file.len() <= LEN_MAX && file.contains(DIGEST_OPEN),
                "{file}"
            );
            assert_eq!(decode(file), None, "{name}");
        }
        assert_ne!(files[0], files[1]);
        assert_eq!(encode(&"a".repeat(200)), "a".repeat(200));
        let hidden = encode("a\u{202e}b");
        assert!(hidden.starts_with("ab%~"), "{hidden}");
        assert_eq!(decode(&hidden), None);
        let mut names = FolderNames::default();
        assert_eq!(names.encode("CON"), "CON");
        let other = names.encode("con");
        assert!(other.starts_with("con%~"), "{other}");
        for file in ["50%", "%2f", "a/b", "%41", "%é1"] {
            assert_eq!(decode(file), None, "{file}");
        }
    }
}
