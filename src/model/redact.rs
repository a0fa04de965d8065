//! What providers say, made fit to be shown: without secrets, without controls, short.

use clover_ground::base64;
use clover_ground::secret;
use clover_ground::secret::Secret;

/// Longest message that is shown or recorded, in characters.
const MESSAGE_CHARS: usize = 300;
/// Beginnings of what looks like a key.
const KEY_LIKE: [&str; 4] = ["sk-", "AIza", "Bearer ", "bearer "];
/// Shortest secret that is looked for: shorter ones stand in any text.
const SECRET_BYTES_MIN: usize = 4;

/// The forms in which a secret may stand in a text.
fn forms(secret: &Secret) -> Vec<String> {
    let plain = secret.expose();
    if plain.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let percent = plain.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    let encoded = base64::encode(plain.as_bytes());
    let bare = encoded.trim_end_matches('=').to_owned();
    vec![
        plain.to_owned(),
        percent.collect(),
        bare.replace('+', "-").replace('/', "_"),
        bare,
    ]
}

/// Whether bytes hold a secret in any of its forms.
pub fn holds_secret(bytes: &[u8], secrets: &[Secret]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut all = secrets.iter().flat_map(forms);
    all.any(|form| text.contains(&form))
}

/// A message without secrets and without controls, cut at 300 characters.
pub fn message(text: &str, secrets: &[Secret]) -> String {
    let mut masked = text.to_owned();
    for form in secrets.iter().flat_map(forms) {
        masked = masked.replace(&form, secret::MASK);
    }
    for beginning in KEY_LIKE {
        masked = without(&masked, beginning);
    }
    let shown = masked.chars().map(|c| if c.is_control() { ' ' } else { c });
    let shown: String = shown.take(MESSAGE_CHARS).collect();
    shown.trim().to_owned()
}

/// Masks every word that begins like a key.
fn without(text: &str, beginning: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(beginning) {
        kept.push_str(&rest[..at]);
        kept.push_str(secret::MASK);
        let after = &rest[at + beginning.len()..];
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
        let end = after.find(|c| !is_key(c)).unwrap_or(after.len());
        rest = &after[end..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_and_what_looks_like_one_are_masked() {
        let secrets = [Secret::new("canary/key+1".to_owned())];
        let encoded = base64::encode(b"canary/key+1");
        for said in [
            "key canary/key+1 is wrong".to_owned(),
            "key canary%2Fkey%2B1 is wrong".to_owned(),
            format!("Basic {encoded} is wrong"),
        ] {
            assert!(holds_secret(said.as_bytes(), &secrets), "{said}");
            let shown = message(&said, &secrets);
            assert!(shown.contains("***") && !shown.contains("anary"), "{shown}");
            assert!(!shown.contains(encoded.trim_end_matches('=')), "{shown}");
        }
        let like = message("Incorrect API key: sk-proj-AbC123_x. Bearer abc.def", &[]);
        assert_eq!(like, "Incorrect API key: *** ***");
    }

    #[test]
    fn a_message_is_short_and_has_no_controls() {
        let shown = message(&format!("a\u{1b}[31m\n{}", "b".repeat(900)), &[]);
        assert_eq!(shown.chars().count(), 300);
        assert!(!shown.chars().any(char::is_control));
    }

    proptest! {
        #[test]
        fn no_message_holds_its_secret(
            before in "\\PC{0,40}", key in "[A-Za-z0-9/+=_-]{8,60}", after in "\\PC{0,40}",
        ) {
            let secrets = [Secret::new(key.clone())];
            let shown = message(&format!("{before}{key}{after}"), &secrets);
            prop_assert!(!shown.contains(&key));
        }
    }
}
