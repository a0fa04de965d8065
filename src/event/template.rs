//! The header of a body in the one form in which bodies are written, read without a JSON parser.
//!
//! Every body that this program signs has this form, so almost all that are read take this way. It accepts
//! nothing but exact canonical bytes; what it does not accept is for the general reader to judge.

use std::borrow::Cow;

use clover_ground::digest::Digest;
use clover_ground::sign::KeyId;
use clover_ground::time::TEXT_LEN;
use clover_ground::time::Timestamp;
use clover_num::Count;
use clover_num::Micro;

use crate::Kind;
use crate::header::Header;
use crate::header::REFS_MAX;
use crate::header::SeenCheckpoint;
use crate::header::Wire;
use crate::id::EventId;
use crate::id::ExperimentId;
use crate::id::ID_LEN_MAX;
use crate::id::Root;

const AFTER_DATA: &str = ",\"experiment\":";
/// Place of its x.
const AFTER_DATA_X: usize = 3;

/// Reads a body; its data stands between the right neighbours and is not looked at.
pub(super) fn read(body: &[u8]) -> Option<Wire<'_>> {
    let mut rest = Rest(std::str::from_utf8(body).ok()?);
    rest.expect("{\"at\":\"")?;
    let at = Timestamp::parse(rest.take(TEXT_LEN)?)?;
    rest.expect("\",\"author\":\"")?;
    let author = KeyId(rest.digest()?);
    rest.expect("\",\"author_seq\":")?;
    let author_seq = rest.count()?.value();
    rest.expect(",\"data\":")?;
    let (data, experiment, kind) = rest.data()?;
    rest.expect(",\"ledger\":")?;
    let ledger = rest.text()?.into();
    rest.expect(",\"refs\":[")?;
    let refs = rest.refs()?;
    rest.expect(",\"seen\":")?;
    let seen = match rest.expect("null") {
        Some(()) => None,
        None => Some(rest.seen()?),
    };
    rest.expect(",\"v\":")?;
    let v = u32::try_from(rest.count()?.value()).ok()?;
    let header = Header {
        at,
        author,
        author_seq,
        experiment,
        ledger,
        refs,
        seen,
    };
    let kind = kind.into();
    (rest.0 == "}").then_some(Wire {
        header,
        kind,
        v,
        data,
    })
}

/// Experiment, kind, version and data.
pub(super) type TemplateHead<'a> = (Option<ExperimentId>, Cow<'a, str>, u32, &'a str);

/// What is said of a body that was read before: the rest of its header is stepped over.
pub(super) fn said(body: &[u8]) -> Option<TemplateHead<'_>> {
    let mut rest = Rest(std::str::from_utf8(body).ok()?);
    rest.step_to_data()?;
    let (data, experiment, kind) = rest.data()?;
    Some((experiment, kind.into(), rest.last()?, data))
}

/// What a `score.recorded` says of which draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScoreDraw<'a> {
    pub(super) draw: Count,
    pub(super) experiment: &'a str,
    pub(super) item: &'a str,
    pub(super) judge: &'a str,
    pub(super) policy: &'a str,
    pub(super) score: Micro,
}

/// The score in a body that was read before: one without private references, whose ids are of printable ASCII.
pub(super) fn scored(body: &[u8]) -> Option<ScoreDraw<'_>> {
    let mut rest = Rest(std::str::from_utf8(body).ok()?);
    rest.step_to_data()?;
    rest.expect("{\"draw\":")?;
    let draw = rest.count()?;
    rest.expect(",\"item\":")?;
    let item = rest.id()?;
    rest.expect(",\"judge\":")?;
    let judge = rest.id()?;
    rest.expect(",\"policy\":")?;
    let policy = rest.id()?;
    rest.expect(",\"score_micro\":")?;
    let score = rest.micro()?;
    rest.expect("}")?;
    rest.expect(AFTER_DATA)?;
    let experiment = rest.id()?;
    rest.expect(",\"kind\":\"score.recorded\",\"ledger\":")?;
    (rest.last()? == Kind::ScoreRecorded.version()).then_some(ScoreDraw {
        draw,
        experiment,
        item,
        judge,
        policy,
        score,
    })
}

/// Where [`AFTER_DATA`] stands last. Hardly anything else behind it has an x.
fn rfind_after_data(text: &str) -> Option<usize> {
    let mut ends = memchr::memrchr_iter(b'x', text.as_bytes());
    ends.find_map(|x| {
        let at = x.checked_sub(AFTER_DATA_X)?;
        text.as_bytes()[at..]
            .starts_with(AFTER_DATA.as_bytes())
            .then_some(at)
    })
}

/// What is left of a body.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn expect(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    fn take(&mut self, len: usize) -> Option<&'a str> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// Steps over what stands before the data.
    fn step_to_data(&mut self) -> Option<()> {
        self.expect("{\"at\":\"")?;
        self.take(TEXT_LEN)?;
        self.expect("\",\"author\":\"")?;
        self.take(64)?;
        self.expect("\",\"author_seq\":")?;
        self.count()?;
        self.expect(",\"data\":")
    }

    /// The version, which stands last.
    fn last(&self) -> Option<u32> {
        let (_, v) = self.0.strip_suffix('}')?.rsplit_once(",\"v\":")?;
        v.parse().ok()
    }

    fn digest(&mut self) -> Option<Digest> {
        Digest::from_hex(self.take(64)?)
    }

    /// A string that is written as it is: without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.expect("\"")?;
        let end = self.0.bytes().position(|byte| byte == b'"')?;
        let text = self.take(end)?;
        self.expect("\"")?;
        let plain = |byte: u8| byte >= 0x20 && byte != b'\\';
        text.bytes().all(plain).then_some(text)
    }

    /// An id of printable ASCII.
    fn id(&mut self) -> Option<&'a str> {
        let id = self.text()?;
        let printable = id.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        (printable && (1..=ID_LEN_MAX).contains(&id.len())).then_some(id)
    }

    /// The data, and the experiment and the kind after it.
    fn data(&mut self) -> Option<(&'a str, Option<ExperimentId>, &'a str)> {
        // Within a text a quote stands behind a backslash, so the last of these is the one after the data.
        let end = rfind_after_data(self.0)?;
        let data = self.take(end)?;
        self.expect(AFTER_DATA)?;
        let experiment = match self.expect("null") {
            Some(()) => None,
            None => Some(ExperimentId::new(self.text()?).ok()?),
        };
        self.expect(",\"kind\":")?;
        Some((data, experiment, self.text()?))
    }

    /// A natural number without leading zeros.
    fn count(&mut self) -> Option<Count> {
        let other = self.0.bytes().position(|byte| !byte.is_ascii_digit())?;
        let digits = self.take(other)?;
        let leading = digits.len() > 1 && digits.starts_with('0');
        Count::new(digits.parse().ok()?).filter(|_| !leading)
    }

    /// A whole number of millionths.
    fn micro(&mut self) -> Option<Micro> {
        let is_negative = self.expect("-").is_some();
        let value = i64::try_from(self.count()?.value()).ok()?;
        Micro::new(if is_negative { -value } else { value }).filter(|_| value > 0 || !is_negative)
    }

    /// The rest of a list of event ids.
    fn refs(&mut self) -> Option<Vec<EventId>> {
        let mut refs = Vec::new();
        if self.expect("]").is_some() {
            return Some(refs);
        }
        while refs.len() < REFS_MAX {
            self.expect("\"")?;
            refs.push(EventId(self.digest()?));
            self.expect("\"")?;
            if self.expect("]").is_some() {
                return Some(refs);
            }
            self.expect(",")?;
        }
        None
    }

    fn seen(&mut self) -> Option<SeenCheckpoint> {
        self.expect("{\"root\":\"")?;
        let root = Root(Digest::from_base64(self.take(44)?)?);
        self.expect("\",\"size\":")?;
        let size = self.count()?;
        self.expect("}")?;
        Some(SeenCheckpoint { root, size })
    }
}
