//! Names of files made of ids, which may hold any character.

use clover_ground::digest::Digest;

/// Bytes that a name may have: most file systems take 255.
const LEN_MAX: usize = 180;

/// A name that no id can leave its folder by: letters, digits, `-`, `_` and dots after the first character stay, every other
/// byte is written as `%` and two digits. No two ids have one name.
pub fn file_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        let stays = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if stays || byte == b'.' && !name.is_empty() {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    if name.len() > LEN_MAX {
        let digest = Digest::sha256(id.as_bytes()).to_hex();
        name.truncate(LEN_MAX - digest.len());
        name.push_str(&digest);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_leaves_its_folder() {
        for (id, name) in [
            ("base", "base"),
            ("gpt-4.1_nano", "gpt-4.1_nano"),
            ("../../x", "%2E.%2F..%2Fx"),
            ("..", "%2E."),
            ("/etc/x", "%2Fetc%2Fx"),
            ("meta-llama/Llama-3", "meta-llama%2FLlama-3"),
            ("a\\b c", "a%5Cb%20c"),
        ] {
            assert_eq!(file_name(id), name);
        }
        let (long, longer) = ("é".repeat(100), "é".repeat(99) + "e");
        assert!(file_name(&long).len() <= LEN_MAX);
        assert_ne!(file_name(&long), file_name(&longer));
    }
}
