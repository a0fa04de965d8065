//! Names as names of files: whatever a name holds, its file lies in the folder that it is written to.

/// Characters that some system gives a meaning of its own in a path, and the sign of an escape.
const ESCAPED: &str = "/\\:*?\"<>|%";

/// A name as the name of a file: what could lead elsewhere is written as `%` and two hexadecimal digits.
pub fn encode(name: &str) -> String {
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
        for file in ["50%", "%2f", "a/b", "%41", "%é1"] {
            assert_eq!(decode(file), None, "{file}");
        }
    }
}
