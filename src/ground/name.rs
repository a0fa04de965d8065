//! Names of people and things: which characters may stand in them, and which two names a reader takes for one.
//!
//! Everything here rests on Unicode 13.0, whatever the libraries beside it know. Normalisation and letter case of a
//! character never change once it is assigned, so newer tables of theirs give the same answers; the test below holds
//! them to that.

use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

/// The characters that Unicode 13.0 assigns, in base 36: how many are skipped, then how many follow, and so on.
/// Surrogates count as assigned, and never stand in a text; the 66 that are no characters do not.
pub const ASSIGNED: &str = "\
    0 oo 2 6 4 7 1 1 1 k 1 b1 1 12 2 1e 2 3 1 1j 8 r 4 6 b t 1 6o 1 1o 2 2t e 1n 2 1d 2 f 1 s 2 1 1 b 1h l 1 i b 4x \
    1 8 2 2 2 m 1 7 1 1 3 4 2 9 2 2 2 4 8 1 4 2 1 5 2 p 2 3 1 6 4 2 2 m 1 7 1 2 1 2 1 2 2 1 1 5 4 2 2 3 3 1 7 4 1 1 \
    7 h a 3 1 9 1 3 1 m 1 7 1 2 1 5 2 a 1 3 1 3 2 1 f 4 2 c 7 7 1 3 1 8 2 2 2 m 1 7 1 2 1 5 2 9 2 2 2 3 7 3 4 2 1 5 \
    2 i a 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 c 4 5 3 3 1 4 2 1 6 1 e l 5 d 1 3 1 n 1 g 3 8 1 3 1 4 7 2 1 3 5 4 2 a \
    7 m 1 3 1 n 1 a 1 5 2 9 1 3 1 4 7 2 7 1 1 4 2 a 1 2 d d 1 3 1 1f 1 3 1 6 4 g 2 q 1 3 1 i 3 o 1 9 1 1 2 7 3 1 4 6 \
    1 1 1 8 6 a 2 3 c 1m 4 t 11 2 1 1 1 5 1 o 1 1 1 n 2 5 1 1 1 6 2 a 2 4 w 20 1 10 4 13 1 10 1 f 1 d 11 5i 1 1 5 1 \
    2 ah 1 4 2 7 1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1 1l 1 4 2 1v 2 w 3 q 6 2e 2 6 2 il 3 2h 7 d 1 7 b n 9 k c \
    d 1 3 1 2 c 2m 2 a 6 a 6 f 1 a 6 2h 7 17 5 1y a v 1 c 4 c 4 1 3 16 2 5 b 18 4 q 6 b 3 1q 2 1t 1 t 2 b 6 a 6 e 2 \
    h 1r 24 4 19 3 38 8 1o 3 f 3 1o 7 17 2 b 8 17 5 6y 1 7v 2 6 2 12 2 6 2 8 1 1 1 1 1 1 1 v 2 1h 1 f 1 e 2 6 1 j 2 \
    3 1 9 1 2t 1 c 2 r 1 d 3 w g x f 3w 4 if p b l 1ec 2 w 1 48 1 1b 1 44 5 19 1 1 5 1 2 1k 7 2 e o 9 7 1 7 1 7 1 7 \
    1 7 1 7 1 7 1 7 1 37 19 q 1 2h c 5y q c 4 1s 1 2e 2 2v 5 17 1 2m 1 2c c 1b 1 lp9 3 wd 3 1j 9 9o k 54 8 5c 2 9 16 \
    1k 3 a 6 1k 8 1y 8 c 6 38 b u 3 26 1 b 4 x 1 1j 9 e 2 a 2 2v o s a 6 2 6 2 6 9 7 1 7 1 1o 4 3i 2 a 6 8mc c n 4 \
    1d 4 6su 2 2y 12 7 c 5 5 q 1 5 1 1 1 2 1 2 1 3g h a5 g 1s 2 1i 14 e 2 q 6 1f 1 j 1 4 4 5 1 3r 2 1 1 5a 3 6 2 6 2 \
    6 2 3 3 7 1 7 a 5 2 c 1 q 1 j 1 2 1 f 2 e y 3f 5 3 4 19 3 2g 1 d 3 1 1b 1a 3m t 3 1d f s 4 10 9 u 5 17 5 u 1 11 \
    4 e 16 4e 2 a 6 10 4 10 4 14 8 1g b 1 40 8n 9 m a 8 48 6 2 1 1 18 1 2 3 1 2 n 1 20 8 9 1c j 1 2 5 x 3 r 5 1 1s \
    1k 4 k 2 1e 1 2 5 8 1 3 1 t 2 3 4 a 7 9 7 1s w 13 4 c 9 1i 3 t 2 r 5 q 7 4 c 7 28 21 1j 1f d 1f 7 1a 8 a 86 v 1 \
    16 1 3 2 2 26 14 8 16 2e s k n 9 26 4 u f 1v b 1 2 p 7 a 6 1h 1 i 8 13 9 2o 1 k b i 1 18 1t 7 1 1 1 4 1 f 1 b 6 \
    1n 5 a 6 4 1 8 2 2 2 m 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 3 5 3v 2k 1 5 u 20 8 a 4m 1i 2 12 y 1x b a 6 d j \
    1l 7 a 1i r 2 f 4 g 5c 1o 2s 2b c 8 2 1 2 8 1 2 1 u 1 2 2 c 9 a 1y 8 2 1a 2 b r 20 8 2b t 1l 7b 9 1 19 1 e a t 3 \
    w 2 m 1 e 21 7 1 2 1 18 3 1 1 2 1 9 8 a 6 6 1 2 1 11 1 2 1 6 7 a 8m p 53 1 f 1e d pn 2u 33 1 5 b 5g 24c tr 1 9 \
    347 g7 6nt ft 7 v 1 a 4 2 2o u 2 6 a 1y a a 1 7 1 l 5 j j4 2j 2t 23 4 1l 7 h 1s 5 b 2 e 4qg 8 ye 16 9 6wn 7z 1d \
    3 h 4 8 b0 1s4 2z 5 d 3 9 7 a 2 8 3to 6u a 13 2 5c n 1y 4a k c 2f 9 p 3r 2d 1 1z 1 2 2 1 2 2 2 4 1 c 1 1 1 7 1 \
    1t 1 4 2 8 1 7 1 s 1 4 1 5 1 1 3 7 1 9g 2 84 2 ji f 5 1 f 11s 7 1 h 2 7 1 2 1 5 5x 19 3 e 2 a 4 2 a8 1m 5 1 zk \
    5h 2 g 15 24 4 a 4 2 lt 1w 24 1p 5e 4 1 r 1 2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 \
    1 1 1 1 2 1 1 2 4 1 7 1 4 1 4 1 1 1 a 1 h 5 3 1 5 1 h 1g 2 7i 18 4 2s c f 2 f 1 f 1 11 a 4u 1k t d 18 4 9 7 2 e \
    6 4a rc 8 d 3 d 3 38 c 2h 7 c k c 4 1k 8 a 6 14 8 u 2 2 26 3d 1 2a 1 3r c e 2 5 3 3 5 7 9 p 7 7 9 3 d 7 15 43 1 \
    1j 11 a sm wym y 379 b 66 2 4g2 e 5rl 2e7 f2 15u 3t7 fcfq 1 u 2o 3k 6o 1e6o 1eke 2 1eke";

/// Letters and digits that look like a letter of ASCII, by it: those of Latin, Greek, Cyrillic, Armenian, Cherokee and
/// Coptic. Source: Unicode Technical Standard 39, confusables.txt, single characters, with the letters whose capitals
/// are alike.
pub const ALIKE: &[(char, &str)] = &[
    ('a', "\u{251}\u{3b1}\u{430}"),
    ('b', "\u{3b2}\u{432}\u{44c}"),
    ('c', "\u{441}\u{1d04}\u{2ca5}\u{abaf}"),
    ('d', "\u{501}"),
    ('e', "\u{3b5}\u{435}"),
    ('f', "\u{584}"),
    ('g', "\u{261}\u{581}"),
    ('h', "\u{43d}\u{4bb}\u{570}"),
    ('i', "\u{269}\u{26a}\u{3b9}\u{456}\u{ab75}"),
    ('j', "\u{3f3}\u{458}"),
    ('k', "\u{3ba}\u{43a}"),
    ('l', "1\u{1c0}\u{4cf}"),
    ('m', "\u{3bc}\u{43c}"),
    ('n', "\u{3b7}\u{578}\u{57c}"),
    ('o', "0\u{3bf}\u{3c3}\u{43e}\u{585}\u{1d0f}\u{2c9f}"),
    ('p', "\u{3c1}\u{440}\u{2ca3}"),
    ('q', "\u{51b}\u{563}\u{566}"),
    ('r', "\u{433}\u{2c85}\u{ab81}"),
    ('s', "\u{455}\u{a731}\u{abaa}"),
    ('t', "\u{3c4}\u{442}"),
    ('u', "\u{3c5}\u{57d}\u{1d1c}"),
    ('v', "\u{3bd}\u{475}\u{1d20}\u{aba9}"),
    ('w', "\u{461}\u{51d}\u{561}\u{1d21}\u{ab83}"),
    ('x', "\u{3c7}\u{445}"),
    ('y', "\u{28f}\u{3b3}\u{443}\u{4af}"),
    ('z', "\u{3b6}\u{1d22}\u{ab93}"),
];

fn ranges() -> Vec<(u32, u32)> {
    let mut next = 0;
    let mut numbers = ASSIGNED
        .split(' ')
        .map(|number| u32::from_str_radix(number, 36).expect("BUG: the table holds numbers"));
    let mut found = Vec::new();
    while let (Some(gap), Some(run)) = (numbers.next(), numbers.next()) {
        found.push((next + gap, next + gap + run - 1));
        next += gap + run;
    }
    found
}

/// Whether Unicode 13.0 assigns a character.
pub fn is_assigned(c: char) -> bool {
    static RANGES: LazyLock<Vec<(u32, u32)>> = LazyLock::new(ranges);
    let code = u32::from(c);
    let after = RANGES.partition_point(|(first, _)| *first <= code);
    after > 0 && code <= RANGES[after - 1].1
}

/// The first character of a text that Unicode 13.0 does not assign.
pub fn unassigned(text: &str) -> Option<char> {
    if text.is_ascii() {
        return None;
    }
    text.chars().find(|c| !is_assigned(*c))
}

/// Characters that nobody sees: `Default_Ignorable_Code_Point` of Unicode 13.0.
pub fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Characters that may move a cursor or reorder what a reader sees, or that nobody sees: whoever prints a text of others shows
/// them as `\u{202e}`.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// White space of Unicode 13.0, and the empty pattern of braille.
pub fn is_blank(c: char) -> bool {
    matches!(c,
        '\t'..='\r' | ' ' | '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}'
        | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}')
}

/// What two names share that a reader takes for one: compatibility forms, letter case, invisible characters, letters that
/// look alike and blanks make no difference.
pub fn skeleton(name: &str) -> String {
    let seen = |text: &str| -> String { text.nfkd().filter(|c| !is_ignorable(*c)).collect() };
    let folded: String = seen(name)
        .chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect();
    let alike = |c: char| {
        let found = ALIKE.iter().find(|(_, others)| others.contains(c));
        found.map_or(c, |(letter, _)| *letter)
    };
    let words = seen(&folded);
    let words: Vec<String> = words
        .split(is_blank)
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().map(alike).collect())
        .collect();
    words.join(" ")
}

/// Why nobody may hold a key under a name.
pub fn fault(name: &str) -> Option<String> {
    if let Some(c) = name.chars().find(|c| is_ignorable(*c)) {
        return Some(format!("an invisible character, {}", c.escape_unicode()));
    }
    if let Some(c) = name.chars().find(|c| is_blank(*c) && *c != ' ') {
        return Some(format!("a blank that is no space, {}", c.escape_unicode()));
    }
    let edges = name.starts_with(' ') || name.ends_with(' ') || name.contains("  ");
    edges.then(|| "a space at an end, or two together".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_of_one_version() {
        for known in ["a", "ü", "漢", "\u{1f600}"] {
            assert_eq!(unassigned(known), None, "{known:?}");
        }
        // Unassigned, no character, and assigned by 14.0, 15.0 and 16.0.
        for newer in ["\u{378}", "\u{ffff}", "\u{1f6dd}", "\u{1e4ec}", "\u{16d63}"] {
            assert!(unassigned(newer).is_some(), "{newer:?}");
        }
        let assigned: u32 = ranges().iter().map(|(a, b)| b - a + 1).sum();
        // Source: Unicode 13.0, 143,859 graphic and format characters, 65 controls, 137,468 for private use, and
        // 2,048 surrogates.
        assert_eq!(assigned, 143_859 + 65 + 137_468 + 2_048);
    }

    #[test]
    fn names_that_look_alike_have_one_skeleton() {
        let alike = [
            "Ada",
            "ada ",
            " A\u{200b}da",
            "Аda",
            "Αdа",
            "ＡＤＡ",
            "\u{202e}Ada",
            "𝐀𝐝𝐚",
        ];
        for name in alike {
            assert_eq!(skeleton(name), "ada", "{name:?}");
        }
        assert_eq!(skeleton("Ada  \u{3000} Lovelace"), "ada lovelace");
        assert_eq!(skeleton("b0t-1"), skeleton("bot-l"));
        assert_eq!(skeleton("ёж"), skeleton("ЁЖ"));
        for (a, b) in [
            ("Ada", "Ade"),
            ("Ian", "Lan"),
            ("Zoe", "Zoë"),
            ("judge-2", "judge-3"),
        ] {
            assert_ne!(skeleton(a), skeleton(b));
        }
        assert_eq!(fault("Ada Lovelace"), None);
        assert_eq!(fault("漢字"), None);
        for bad in [
            "Ada ",
            " Ada",
            "A  B",
            "A\u{a0}B",
            "A\u{200b}",
            "\u{3164}",
            "\u{2800}",
        ] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
    }
}
