//! Values as words of a shell, for commands that a person copies from a screen.

use std::fmt::Display;

/// A value as one word: quoted when a shell would read anything else into it.
pub fn word(value: &(impl Display + ?Sized)) -> String {
    let text = value.to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text;
    }
    quoted(&text)
}

/// A value as one word, always in quotes.
pub fn quoted(value: &(impl Display + ?Sized)) -> String {
    format!("'{}'", value.to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Child;
    use crate::process::Heard;

    #[test]
    fn a_shell_gives_every_word_back() {
        let words = [
            "exp-1",
            "",
            "a b",
            "x;touch here",
            "$(id) `id`",
            "it's",
            "'",
            "\\",
            "*",
            "~",
            "#",
            "!!",
            "über",
        ];
        for text in words {
            for shown in [word(text), quoted(text)] {
                let script = format!("printf '%s\\n' {shown}");
                let folder = std::path::Path::new("/");
                let mut child = Child::start("sh", &["-c".to_owned(), script], folder).unwrap();
                let heard = child.hear(std::time::Duration::from_secs(20));
                assert_eq!(heard, Heard::Line(text.to_owned()), "{shown}");
            }
        }
        assert_eq!(word("exp-1"), "exp-1");
        assert_eq!(quoted("exp-1"), "'exp-1'");
    }
}
