//! Plain text without a model: words, tokens, sentences and web addresses, by rules that a page can state.
//!
//! Every function is one pass over the characters, cuts only between characters, and gives the same answer on
//! every machine. Zero-width characters, marks of direction and combining marks never begin, end or count
//! anything, so that they cannot hide a word.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// Letters or digits of one run that make one token.
pub const RUN_LETTERS: u32 = 24;

/// What a character is to a reader of runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Ends a run and counts nothing.
    Space,
    /// Part of whatever surrounds it.
    Joiner,
    /// A letter of a script that puts several into a word.
    Letter,
    /// A digit.
    Digit,
    /// Alone: an ideograph, a syllable, a sign.
    Alone,
}

fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{e0100}'..='\u{e01ef}'
    ) || is_combining_mark(c)
}

/// Scripts without spaces between words: ideographs, kana, Hangul, Thai, Lao, Myanmar, Khmer.
fn is_alone(c: char) -> bool {
    matches!(
        c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
    )
}

fn class(c: char) -> Class {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Class::Letter,
            '0'..='9' => Class::Digit,
            ' ' | '\t'..='\r' => Class::Space,
            _ if c.is_ascii_control() => Class::Space,
            _ => Class::Alone,
        };
    }
    if is_joiner(c) {
        Class::Joiner
    } else if c.is_whitespace() || c.is_control() {
        Class::Space
    } else if is_alone(c) {
        Class::Alone
    } else if c.is_alphabetic() {
        Class::Letter
    } else if c.is_numeric() {
        Class::Digit
    } else {
        Class::Alone
    }
}

/// Number of tokens: one for each started [`RUN_LETTERS`] of a run of letters or of a run of digits, and one for
/// every other character that is not space: a sign, an ideograph, a syllable.
pub fn tokens(text: &str) -> u64 {
    let (mut count, mut run, mut length) = (0, Class::Space, 0);
    for c in text.chars() {
        let class = class(c);
        match class {
            Class::Joiner => continue,
            Class::Space => {}
            Class::Alone => count += 1,
            Class::Letter | Class::Digit => {
                length = if class == run { length + 1 } else { 0 };
                if length % RUN_LETTERS == 0 {
                    count += 1;
                }
            }
        }
        run = class;
    }
    count
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    /// Its first byte.
    pub start: usize,
    /// As it stands in the text.
    pub text: &'t str,
}

impl Word<'_> {
    /// The byte after its last.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Words in order: runs of letters and digits, with apostrophes between letters (`isn't`); ideographs and
/// syllables one by one.
pub fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (mut start, mut end) = (None, 0);
        while let Some(&(at, c)) = chars.peek() {
            let class = class(c);
            let inside = start.is_some();
            match class {
                Class::Letter | Class::Digit => {
                    start.get_or_insert(at);
                    end = at + c.len_utf8();
                }
                Class::Joiner if inside => end = at + c.len_utf8(),
                Class::Alone if is_alone(c) => {
                    if !inside {
                        chars.next();
                        start = Some(at);
                        end = at + c.len_utf8();
                    }
                    break;
                }
                Class::Alone if inside && matches!(c, '\'' | '\u{2019}') => {
                    let after = text[at + c.len_utf8()..].chars().next();
                    if !after.is_some_and(|c| self::class(c) == Class::Letter && !is_alone(c)) {
                        break;
                    }
                    end = at + c.len_utf8();
                }
                _ if inside => break,
                _ => {}
            }
            chars.next();
        }
        let start = start?;
        Some(Word {
            start,
            text: &text[start..end],
        })
    })
}

/// A word as it is compared: lower case, compatibility forms resolved, joiners dropped, one apostrophe; written over `into`.
pub fn fold(word: &str, into: &mut String) {
    into.clear();
    if word.is_ascii() {
        into.push_str(word);
        into.make_ascii_lowercase();
        return;
    }
    for c in word
        .nfkc()
        .filter(|c| !is_joiner(*c))
        .flat_map(char::to_lowercase)
    {
        into.push(if c == '\u{2019}' { '\'' } else { c });
    }
}

/// Calls `see` with each word outside of web addresses, and with its folded form.
pub fn each_spoken<'t>(text: &'t str, mut see: impl FnMut(Word<'t>, &str)) {
    let addresses = addresses(text);
    let (mut next, mut folded) = (0, String::new());
    for word in words(text) {
        while addresses
            .get(next)
            .is_some_and(|address| address.end <= word.start)
        {
            next += 1;
        }
        if addresses
            .get(next)
            .is_some_and(|address| address.start < word.end())
        {
            continue;
        }
        fold(word.text, &mut folded);
        see(word, &folded);
    }
}

/// Sentences in order, without the space around them: a full stop, question or exclamation mark ends one when
/// space or nothing follows it (and whatever closes it); an ideographic one ends one anywhere. Lines end none, so that
/// layout decides nothing.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return None;
            }
            let end = sentence_end(rest);
            let sentence = rest[..end].trim_end();
            rest = &rest[end..];
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
    })
}

/// The byte after the first sentence.
fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let after = at + c.len_utf8();
        if matches!(
            c,
            '\u{3002}' | '\u{ff01}' | '\u{ff1f}' | '\u{6d4}' | '\u{964}' | '\u{61f}'
        ) {
            return after;
        }
        if !matches!(c, '.' | '!' | '?') {
            continue;
        }
        let mut end = after;
        while let Some(&(at, c)) = chars.peek() {
            if !matches!(
                c,
                '.' | '!' | '?' | '"' | '\'' | ')' | ']' | '*' | '_' | '\u{201d}' | '\u{2019}'
            ) {
                break;
            }
            end = at + c.len_utf8();
            chars.next();
        }
        match chars.peek() {
            None => return end,
            Some((_, c)) if c.is_whitespace() => return end,
            _ => {}
        }
    }
    text.len()
}

/// Web addresses in order: `http://` or `https://` in any case, or `www.` at the start of a word, up to space or one of
/// ``<>"` ``; what closes a sentence or a bracket around it is not part of it.
pub fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(step) = memchr::memchr2(b':', b'.', &bytes[at..]) {
        let mark = at + step;
        at = mark + 1;
        let before = &bytes[found.last().map_or(0, |last| last.end)..mark];
        let ends = |scheme: &str| {
            before.len() >= scheme.len()
                && before[before.len() - scheme.len()..].eq_ignore_ascii_case(scheme.as_bytes())
        };
        let length = if bytes[mark] == b':' && bytes[at..].starts_with(b"//") {
            ["https", "http"]
                .into_iter()
                .find(|scheme| ends(scheme))
                .map(|scheme| (scheme.len(), "://".len()))
        } else {
            let apart =
                |at: usize| !bytes[at].is_ascii_alphanumeric() && !b"/@.-_".contains(&bytes[at]);
            let alone = before.len() == 3 || before.len() > 3 && apart(mark - 4);
            (bytes[mark] == b'.' && ends("www") && alone).then_some((3, 1))
        };
        let Some((length, least)) = length else {
            continue;
        };
        let start = mark - length;
        let stop =
            |c: char| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '`');
        let end = text[mark..]
            .find(stop)
            .map_or(text.len(), |step| mark + step);
        let end = start + trimmed(&text[start..end]);
        if end > mark + least {
            found.push(start..end);
            at = end;
        }
    }
    found
}

/// Length of an address without what closes the text around it.
fn trimmed(address: &str) -> usize {
    let mut depth: i64 = address
        .chars()
        .map(|c| i64::from(c == ')') - i64::from(c == '('))
        .sum();
    let mut end = address.len();
    while let Some(c) = address[..end].chars().next_back() {
        let closes = match c {
            ')' if depth > 0 => {
                depth -= 1;
                true
            }
            _ => matches!(
                c,
                '.' | ',' | ';' | ':' | '!' | '?' | '\'' | ']' | '}' | '*' | '_' | '|'
            ),
        };
        if !closes {
            break;
        }
        end -= c.len_utf8();
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(text: &str) -> Vec<&str> {
        words(text).map(|word| word.text).collect()
    }

    #[test]
    fn tokens_are_runs_and_signs() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens("bmj.com"), 3);
        assert_eq!(tokens("It isn't 20mg, is it?"), 10);
        assert_eq!(tokens("\r\n \t\u{a0}"), 0);
        // Hidden joiners neither split nor count; marks belong to their letter.
        assert_eq!(tokens("wo\u{200b}rd"), 1);
        assert_eq!(tokens("e\u{301}te\u{301}"), 1);
        // An endless run is not one token.
        assert_eq!(tokens(&"a".repeat(24)), 1);
        assert_eq!(tokens(&"a".repeat(25)), 2);
        assert_eq!(tokens(&"7".repeat(49)), 3);
        // Ideographs and syllables count one by one.
        assert_eq!(tokens("漢字かな"), 4);
        assert_eq!(tokens("مرحبا بالعالم"), 2);
        assert_eq!(tokens("👩\u{200d}🔬!"), 3);
    }

    #[test]
    fn words_keep_apostrophes_and_places() {
        assert_eq!(listed("It isn’t—'so' 20mg."), ["It", "isn’t", "so", "20mg"]);
        assert_eq!(listed("漢字ab"), ["漢", "字", "ab"]);
        assert_eq!(listed("ab漢"), ["ab", "漢"]);
        let text = "née \u{202e}abc";
        for word in words(text) {
            assert_eq!(&text[word.start..word.end()], word.text);
        }
        let mut folded = String::new();
        fold("ＭＡＹ", &mut folded);
        assert_eq!(folded, "may");
        fold("Isn’t", &mut folded);
        assert_eq!(folded, "isn't");
    }

    #[test]
    fn sentences_end_at_stops_before_space() {
        let list = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(
            list("One is 2.5. Two! \"Three?\" four"),
            ["One is 2.5.", "Two!", "\"Three?\"", "four"]
        );
        assert_eq!(
            list("Line\r\nbreaks end none.\n\n"),
            ["Line\r\nbreaks end none."]
        );
        assert_eq!(list("一。二。"), ["一。", "二。"]);
        assert_eq!(list(" "), Vec::<&str>::new());
    }

    #[test]
    fn addresses_are_found_and_trimmed() {
        let list = |text: &'static str| {
            addresses(text)
                .into_iter()
                .map(|range| &text[range])
                .collect::<Vec<_>>()
        };
        assert_eq!(
            list("See (https://who.int/a_(b)), or HTTP://X.org."),
            ["https://who.int/a_(b)", "HTTP://X.org"]
        );
        assert_eq!(
            list("[t](https://a.b/c) www.d.e, notwww.x.y a@www.z.q"),
            ["https://a.b/c", "www.d.e"]
        );
        assert_eq!(list("ftp://x.y https:// http://"), Vec::<&str>::new());
        assert_eq!(
            list("https://a\u{202e}.b/\\c\nnext"),
            ["https://a\u{202e}.b/\\c"]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_cut_between_characters(text in any::<String>()) {
            let mut last = 0;
            for word in words(&text) {
                prop_assert!(word.start >= last && !word.text.is_empty());
                last = word.end();
                prop_assert_eq!(&text[word.start..last], word.text);
            }
            for range in addresses(&text) {
                prop_assert!(text.get(range).is_some());
            }
            let pieces: usize = sentences(&text).map(str::len).sum();
            prop_assert!(pieces <= text.len());
            prop_assert!(tokens(&text) <= text.chars().count() as u64);
        }
    }
}
