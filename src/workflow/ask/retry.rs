//! When an attempt is made again, and how long it waits: classes of what came back, Retry-After, backoff.

use clover_event::calls::AttemptClass;
use clover_ground::time::Timestamp;

use crate::ask::BrokenCause;
use crate::ask::Micros;
use crate::ask::Reply;
use crate::ask::SECOND;

/// First backoff; it doubles with each attempt.
const BACKOFF_FIRST: Micros = SECOND / 2;
/// Longest backoff.
const BACKOFF_MAX: Micros = 60 * SECOND;
/// Longest wait that a header can ask for; longer ones are cut to it.
const ASKED_MAX: Micros = 400 * 24 * 3_600 * SECOND;

/// Codes of a 429 that no waiting mends.
const QUOTA_CODES: [&str; 4] = [
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "credit_balance_too_low",
];

/// The class of what came back.
pub fn class_of(reply: &Reply, is_json: bool) -> AttemptClass {
    let (status, again) = match reply {
        Reply::Broken { cause, .. } => {
            return match cause {
                BrokenCause::Cut => AttemptClass::Cut,
                BrokenCause::Late => AttemptClass::Late,
                BrokenCause::Oversize => AttemptClass::Oversize,
                BrokenCause::Unreachable | BrokenCause::Untrusted => AttemptClass::Unreachable,
            };
        }
        Reply::Http {
            status, headers, ..
        } => (*status, header(headers, "x-should-retry") == Some("true")),
    };
    match status {
        200..=299 if is_json => AttemptClass::Ok,
        200..=299 => AttemptClass::Foreign,
        300..=399 => AttemptClass::Redirected,
        401..=403 => AttemptClass::Denied,
        429 => AttemptClass::Limited,
        500 | 502 | 504 => AttemptClass::Failed,
        408 | 425 | 503 | 529 => AttemptClass::Overloaded,
        _ if again || status > 500 => AttemptClass::Overloaded,
        _ => AttemptClass::Rejected,
    }
}

/// Whether a complaint with status 429 says that the quota is used up.
pub fn is_out_of_quota(complaint: &str) -> bool {
    QUOTA_CODES.iter().any(|code| complaint.contains(code))
}

/// The value of a header whose name is in lower case.
pub fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let found = headers.iter().find(|(of, _)| of == name);
    found.map(|(_, value)| value.trim())
}

/// How long an answer asks to wait: `retry-after-ms`, else `retry-after` as seconds or as a date.
pub fn asked_wait(headers: &[(String, String)], now: Timestamp) -> Option<Micros> {
    if let Some(text) = header(headers, "retry-after-ms")
        && let Some(wait) = decimal(text, 3)
    {
        return Some(wait.min(ASKED_MAX));
    }
    let text = header(headers, "retry-after")?;
    let wait = match decimal(text, 6) {
        Some(wait) => wait,
        None => u64::try_from(http_date(text)?.micros() - now.micros()).unwrap_or(0),
    };
    Some(wait.min(ASKED_MAX))
}

/// Digits with at most one point, as an integer of `places` decimals, further ones rounded up.
fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || whole.len() > 12 {
        return None;
    }
    let mut value: u64 = whole.parse().ok()?;
    let mut given = part.bytes();
    for _ in 0..places {
        let digit = given.next().map_or(0, |byte| u64::from(byte - b'0'));
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    let more = given.any(|byte| byte != b'0');
    value.checked_add(u64::from(more))
}

/// A date of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let rest = text.split_once(", ")?.1;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|of| *of == month)? + 1;
    Timestamp::parse_rfc3339(&format!("{year}-{month:02}-{day}T{time}Z"))
}

/// How long the next attempt waits by itself: uniform in 0 to a span that doubles with the attempts that failed, from half a
/// second to a minute. `draw` is uniform over its range.
pub fn backoff(failed: u32, draw: u64) -> Micros {
    let doubled = BACKOFF_FIRST.saturating_mul(1_u64 << failed.saturating_sub(1).min(20));
    let span = doubled.min(BACKOFF_MAX);
    let scaled = u128::from(draw) * u128::from(span) / u128::from(u64::MAX);
    u64::try_from(scaled).unwrap_or(span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn http(status: u16, headers: &[(&str, &str)]) -> Reply {
        let headers = headers.iter();
        Reply::Http {
            status,
            headers: headers
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            body: Vec::new(),
        }
    }

    fn asked(headers: &[(&str, &str)], now: &str) -> Option<Micros> {
        let Reply::Http { headers, .. } = http(429, headers) else {
            panic!("no answer of HTTP");
        };
        asked_wait(&headers, Timestamp::parse_rfc3339(now).unwrap())
    }

    #[test]
    fn what_came_back_has_the_class_of_its_status() {
        let class = |status| class_of(&http(status, &[]), true);
        for (status, expected) in [
            (200, AttemptClass::Ok),
            (302, AttemptClass::Redirected),
            (400, AttemptClass::Rejected),
            (401, AttemptClass::Denied),
            (404, AttemptClass::Rejected),
            (408, AttemptClass::Overloaded),
            (422, AttemptClass::Rejected),
            (425, AttemptClass::Overloaded),
            (429, AttemptClass::Limited),
            (500, AttemptClass::Failed),
            (502, AttemptClass::Failed),
            (503, AttemptClass::Overloaded),
            (504, AttemptClass::Failed),
            (529, AttemptClass::Overloaded),
        ] {
            assert_eq!(class(status), expected, "{status}");
        }
        let told = http(409, &[("x-should-retry", "true")]);
        assert_eq!(class_of(&told, true), AttemptClass::Overloaded);
        assert_eq!(class_of(&http(200, &[]), false), AttemptClass::Foreign);
    }

    /// source: RFC 9110, 10.2.3 and 5.6.7, its example date.
    #[test]
    fn a_wait_is_read_as_seconds_milliseconds_or_a_date() {
        let now = "1994-11-06T08:49:30Z";
        assert_eq!(asked(&[("retry-after", "7")], now), Some(7 * SECOND));
        assert_eq!(asked(&[("retry-after", "0.25")], now), Some(SECOND / 4));
        let date = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
        assert_eq!(asked(&date, now), Some(7 * SECOND));
        assert_eq!(asked(&date, "1994-11-06T09:00:00Z"), Some(0));
        let both = [("retry-after", "9"), ("retry-after-ms", "1500")];
        assert_eq!(asked(&both, now), Some(3 * SECOND / 2));
        for text in ["", "soon", "-3", "1e9", "Sun, 06 Nov 1994"] {
            assert_eq!(asked(&[("retry-after", text)], now), None, "{text}");
        }
        let day = asked(&[("retry-after", "86400")], now);
        assert_eq!(day, Some(86_400 * SECOND));
    }

    proptest! {
        #[test]
        fn a_backoff_stays_within_its_doubling_span(failed in 0_u32..100, draw: u64) {
            let span = (SECOND / 2).saturating_mul(1 << failed.saturating_sub(1).min(20)).min(60 * SECOND);
            prop_assert!(backoff(failed, draw) <= span);
            prop_assert_eq!(backoff(failed, 0), 0);
            prop_assert_eq!(backoff(failed, u64::MAX), span);
        }

        #[test]
        fn no_header_makes_a_wait_longer_than_can_be(text in "\\PC{0,40}") {
            let headers = vec![("retry-after".to_owned(), text)];
            let now = Timestamp::from_micros(0).unwrap();
            prop_assert!(asked_wait(&headers, now).unwrap_or(0) <= ASKED_MAX);
        }
    }
}
