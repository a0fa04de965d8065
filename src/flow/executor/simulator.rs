//! A simulated model: it knows the right answer of an item, and slips as the item says.
//!
//! A slip happens with a probability unless the prompt holds a token (`until`), or fewer members than `together` are
//! asked for at once. Draws come from a seed, the item, the slip and the request alone, so that equal asks get equal
//! answers; above temperature 0 the rerun and the number of equal asks before count too.

use std::collections::BTreeMap;

use clover_ground::digest::Digest;

use crate::decode::Spot;
use crate::executor::Executor;
use crate::executor::ExecutorFault;
use crate::executor::StepAnswer;
use crate::executor::StepAsk;
use crate::executor::Usage;
use crate::fault::Fault;
use crate::path::Path;
use crate::shape::Shape;
use crate::value::Data;

/// Domain of the simulator's draws.
const DRAW_LABEL: &str = "clover/wf-sim/v1";
/// Most slips of an item.
const SLIPS_MAX: usize = 32;

/// What a simulated model knows of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemModel {
    answer: Data,
    slips: Vec<Slip>,
}

/// A way in which it goes wrong.
#[derive(Clone, Debug, PartialEq)]
struct Slip {
    id: String,
    /// Probability in millionths.
    probability: i128,
    until: Option<String>,
    together: u64,
    step: Option<String>,
    fault: SlipFault,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
enum SlipFault {
    /// A member is not there.
    DropField(Path),
    /// A member has another value: what stands there when a rule is ignored.
    IgnoreRule(Path, Data),
    /// The answer is cut, so that it is no JSON.
    Garble,
    /// No answer in time.
    Timeout,
    /// The endpoint answers with an error.
    Failed,
}

/// How able the simulated model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// It slips as often as the item says.
    Weak,
    /// It slips a quarter as often.
    Strong,
}

impl ItemModel {
    /// A model that knows an answer and slips as a document says.
    pub(crate) fn decode(spot: &Spot<'_>) -> Result<Self, Fault> {
        let fields = spot.fields(&["answer", "slips"])?;
        let slips = match fields.get("slips") {
            None => Vec::new(),
            Some(spot) => spot.list(SLIPS_MAX)?,
        };
        Ok(Self {
            answer: fields.need("answer")?.data()?,
            slips: slips.iter().map(Slip::decode).collect::<Result<_, _>>()?,
        })
    }
}

impl Slip {
    fn decode(spot: &Spot<'_>) -> Result<Self, Fault> {
        let fields = spot.fields(&[
            "id", "p", "until", "together", "step", "fault", "path", "value",
        ])?;
        let text = |name: &str| fields.get(name).map(|spot| spot.text(400)).transpose();
        let p = fields.need("p")?;
        let probability = p.number()?.millionths();
        if !(0..=1_000_000).contains(&probability) {
            return Err(p.expected("a probability from 0 to 1"));
        }
        let path = || {
            let spot = fields.need("path")?;
            let path = Path::parse(&format!("answer.{}", spot.text(400)?));
            path.ok_or_else(|| spot.expected("a path below the answer, such as total"))
        };
        let words = &[
            ("drop_field", 0),
            ("ignore_rule", 1),
            ("garble", 2),
            ("timeout", 3),
            ("failed", 4),
        ];
        let wanted = "drop_field, ignore_rule, garble, timeout or failed";
        let fault = match fields.need("fault")?.word(words, wanted)? {
            0 => SlipFault::DropField(path()?),
            1 => SlipFault::IgnoreRule(path()?, fields.need("value")?.data()?),
            2 => SlipFault::Garble,
            3 => SlipFault::Timeout,
            _ => SlipFault::Failed,
        };
        let together = fields.get("together");
        let together = together.map(|spot| spot.count(0, 64, "a whole number from 0 to 64"));
        Ok(Self {
            id: fields.need("id")?.text(64)?.to_owned(),
            probability,
            until: text("until")?.map(str::to_owned),
            together: together.transpose()?.unwrap_or(0),
            step: text("step")?.map(str::to_owned),
            fault,
        })
    }
}

/// The simulated model at work on one item.
#[derive(Debug)]
pub struct SimulatedModel<'a> {
    seed: u64,
    strength: Strength,
    item: &'a str,
    model: &'a ItemModel,
    asked: BTreeMap<Digest, usize>,
}

impl<'a> SimulatedModel<'a> {
    /// At work on an item.
    pub fn new(seed: u64, strength: Strength, item: &'a str, model: &'a ItemModel) -> Self {
        Self {
            seed,
            strength,
            item,
            model,
            asked: BTreeMap::new(),
        }
    }

    /// Whether a slip happens.
    fn slips(&self, slip: &Slip, ask: &StepAsk<'_>, asked: u64, nth: usize) -> bool {
        if slip.step.as_deref().is_some_and(|step| step != ask.step) || asked < slip.together {
            return false;
        }
        let mut texts = messages(ask.request);
        if slip
            .until
            .as_ref()
            .is_some_and(|token| texts.any(|text| text.contains(token.as_str())))
        {
            return false;
        }
        let repeat = match ask.of.settings.temperature.millionths() {
            0 => String::new(),
            _ => format!("{}/{nth}", ask.rerun),
        };
        let place = [
            self.seed.to_string(),
            self.item.to_owned(),
            slip.id.clone(),
            ask.digest.to_hex(),
            repeat,
        ];
        let drawn = Digest::labelled(DRAW_LABEL, place.join("\n").as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&drawn.as_bytes()[..8]);
        let part = i128::from(u64::from_be_bytes(bytes)) * 1_000_000;
        let probability = match self.strength {
            Strength::Weak => slip.probability,
            Strength::Strong => slip.probability / 4,
        };
        part < probability << 64
    }

    fn answer(&self, ask: &StepAsk<'_>, nth: usize) -> StepAnswer {
        let wanted: Vec<&str> = ask.of.shape.iter().flat_map(Shape::properties).collect();
        let mut answer = self.model.answer.clone();
        if let (Data::Object(members), false) = (&mut answer, wanted.is_empty()) {
            members.retain(|name, _| wanted.contains(&name.as_str()));
        }
        let asked = match &answer {
            Data::Object(members) => members.len() as u64,
            _ => 1,
        };
        let mut cut = false;
        for slip in &self.model.slips {
            if !self.slips(slip, ask, asked, nth) {
                continue;
            }
            match &slip.fault {
                SlipFault::DropField(path) => change(&mut answer, path.below(), None),
                SlipFault::IgnoreRule(path, value) => {
                    change(&mut answer, path.below(), Some(value));
                }
                SlipFault::Garble => cut = true,
                SlipFault::Timeout => return StepAnswer::Timeout(usage(ask, "")),
                SlipFault::Failed => {
                    return StepAnswer::Failed("status 503".to_owned(), usage(ask, ""));
                }
            }
        }
        let mut text = answer.shown().into_owned();
        if cut {
            text.pop();
            text.push('…');
        }
        let usage = usage(ask, &text);
        StepAnswer::Text(text, usage)
    }
}

impl Executor for SimulatedModel<'_> {
    fn ask(&mut self, ask: &StepAsk<'_>) -> Result<StepAnswer, ExecutorFault> {
        let asked = self.asked.entry(ask.digest).or_default();
        let nth = *asked;
        *asked += 1;
        Ok(self.answer(ask, nth))
    }
}

/// Texts of a request's messages.
fn messages(request: &Data) -> impl Iterator<Item = &str> {
    let messages = request.member("messages").and_then(Data::as_list);
    let messages = messages.unwrap_or_default().iter();
    messages.filter_map(|message| message.member("content")?.as_text())
}

/// Tokens are bytes by four, rounded up: enough to compare costs of a simulation.
fn usage(ask: &StepAsk<'_>, answer: &str) -> Usage {
    let sent: usize = messages(ask.request).map(str::len).sum();
    Usage {
        calls: 1,
        ms: 0,
        tokens_in: sent.div_ceil(4) as u64,
        tokens_out: answer.len().div_ceil(4) as u64,
        usd_micro: 0,
    }
}

/// Sets what stands at a path, or takes it away; a path that leads nowhere changes nothing.
fn change(root: &mut Data, path: &[String], value: Option<&Data>) {
    let Some((last, before)) = path.split_last() else {
        return;
    };
    let mut at = root;
    for segment in before {
        let next = match at {
            Data::Object(members) => members.get_mut(segment),
            Data::List(items) => crate::path::index(segment).and_then(|at| items.get_mut(at)),
            _ => None,
        };
        let Some(next) = next else { return };
        at = next;
    }
    match (at, value) {
        (Data::Object(members), Some(value)) => {
            if let Some(member) = members.get_mut(last) {
                *member = value.clone();
            }
        }
        (Data::Object(members), None) => {
            members.remove(last);
        }
        (Data::List(items), value) => {
            let place = crate::path::index(last).filter(|at| *at < items.len());
            match (place, value) {
                (Some(at), Some(value)) => items[at] = value.clone(),
                (Some(at), None) => {
                    items.remove(at);
                }
                (None, _) => {}
            }
        }
        _ => {}
    }
}
