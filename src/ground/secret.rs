//! A secret that is wiped from memory when it is dropped, and that shows itself to nobody.

use std::fmt;

use zeroize::Zeroizing;

/// What stands for a secret wherever one would be shown.
pub const MASK: &str = "***";

/// A secret: it prints as `***`, and its bytes are wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Keeps a secret.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_shown_to_nobody() {
        let secret = Secret::new("sk-canary".to_owned());
        let shown = format!("{secret} {secret:?} {:?}", Some(&secret));
        assert!(!shown.contains("canary"), "{shown}");
        assert_eq!(secret.expose(), "sk-canary");
    }
}
