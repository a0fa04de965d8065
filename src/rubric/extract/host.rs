//! The host of a web address as a browser would go there: the part that cannot be dressed up.

use unicode_normalization::UnicodeNormalization as _;

use crate::evidence::is_host;

/// The host of an address that has none: a name that is reserved never to exist.
pub(super) const NO_HOST: &str = "host.invalid";

/// Host name of an address, in lower case and ASCII.
///
/// The authority ends at the first `/`, `\`, `?` or `#`; what stands before its last `@` and behind its port is not
/// the host. Percent signs are decoded, compatibility forms and ideographic stops resolved, zero-width characters dropped,
/// and labels beyond ASCII written in Punycode (RFC 3492), so that look-alike letters show. Whatever then is no host name
/// of two labels is [`host.invalid`](https://www.rfc-editor.org/rfc/rfc2606), which no rubric lists.
pub fn host(address: &str) -> String {
    let rest = match address.split_once("://") {
        Some((_, rest)) => rest.trim_start_matches(['/', '\\']),
        None => address,
    };
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let name = match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    };
    ascii(name)
        .filter(|name| is_host(name))
        .unwrap_or_else(|| NO_HOST.to_owned())
}

fn ascii(name: &str) -> Option<String> {
    let decoded = percent_decoded(name)?;
    let ignored = |c: &char| {
        !matches!(
            c,
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
        )
    };
    let plain: String = decoded
        .chars()
        .filter(ignored)
        .nfkc()
        .flat_map(char::to_lowercase)
        .collect();
    let plain = plain.replace(['\u{3002}', '\u{ff0e}', '\u{ff61}'], ".");
    let plain = plain.strip_suffix('.').unwrap_or(&plain);
    if plain.is_ascii() {
        return Some(plain.to_owned());
    }
    let labels: Option<Vec<String>> = plain.split('.').map(label).collect();
    Some(labels?.join("."))
}

/// A label in ASCII; `None` when it is longer than any label may be.
fn label(text: &str) -> Option<String> {
    const LETTERS_MAX: usize = 63;
    if text.is_ascii() {
        return Some(text.to_owned());
    }
    if text.chars().count() > LETTERS_MAX {
        return None;
    }
    punycode(text).map(|code| format!("xn--{code}"))
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = rest
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok())?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).ok()
}

/// Punycode of a label (RFC 3492, 6.3); `None` on overflow, which no label of 63 letters reaches.
fn punycode(label: &str) -> Option<String> {
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    if basic > 0 {
        out.push('-');
    }
    let (mut next, mut delta, mut bias, mut handled) = (128_u32, 0_u32, 72_u32, basic);
    let total = u32::try_from(label.chars().count()).ok()?;
    while handled < total {
        let least = label
            .chars()
            .map(u32::from)
            .filter(|code| *code >= next)
            .min()?;
        delta = delta.checked_add((least - next).checked_mul(handled + 1)?)?;
        next = least;
        for code in label.chars().map(u32::from) {
            if code < next {
                delta = delta.checked_add(1)?;
            }
            if code == next {
                push_variable(&mut out, delta, bias);
                bias = adapted(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        next += 1;
    }
    Some(out)
}

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;

/// A number as digits of variable thresholds (RFC 3492, 6.3).
fn push_variable(out: &mut String, number: u32, bias: u32) {
    let letter = |digit: u32| char::from_u32(if digit < 26 { digit + 97 } else { digit + 22 });
    let (mut rest, mut place) = (number, BASE);
    loop {
        let threshold = place.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if rest < threshold {
            out.extend(letter(rest));
            return;
        }
        out.extend(letter(threshold + (rest - threshold) % (BASE - threshold)));
        rest = (rest - threshold) / (BASE - threshold);
        place += BASE;
    }
}

/// The bias after a number (RFC 3492, 6.1).
fn adapted(delta: u32, points: u32, is_first: bool) -> u32 {
    const SKEW: u32 = 38;
    const DAMP: u32 = 700;
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut steps = 0;
    while delta > (BASE - T_MIN) * T_MAX / 2 {
        delta /= BASE - T_MIN;
        steps += BASE;
    }
    steps + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_where_a_browser_goes() {
        for (address, expected) in [
            ("https://WWW.Who.INT/a", "www.who.int"),
            ("www.who.int?x", "www.who.int"),
            ("https://who.int.:443/", "who.int"),
            ("https://who.int@evil.example/", "evil.example"),
            ("https://u:p@evil.example:8080", "evil.example"),
            ("https://evil.example#@who.int", "evil.example"),
            ("https://evil.example\\@who.int", "evil.example"),
            (
                "https://who.int.evil.example/who.int",
                "who.int.evil.example",
            ),
            ("https:///evil.example/", "evil.example"),
            ("https://%77ho.int/", "who.int"),
            ("https://who\u{3002}int", "who.int"),
            ("https://ｗｈｏ．int", "who.int"),
            ("https://w\u{200b}ho.int", "who.int"),
            // source: Python 3 `"…".encode("idna")`
            ("https://bücher.example/", "xn--bcher-kva.example"),
            ("https://раypal.com", "xn--ypal-43d9g.com"),
            ("https://例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("https://مثال.إختبار", "xn--mgbh0fb.xn--kgbechtv"),
            ("https://[::1]/", NO_HOST),
            ("https://localhost/", NO_HOST),
            ("https://a_b.c/", NO_HOST),
            ("https://who.int,https://evil.example", NO_HOST),
            ("https://%zz.int", NO_HOST),
            ("https://", NO_HOST),
        ] {
            assert_eq!(host(address), expected, "{address}");
        }
        assert_eq!(
            host(&format!("https://{}.example", "ü".repeat(64))),
            NO_HOST
        );
    }
}
