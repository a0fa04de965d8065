//! What `clover demo` tells: two iterations of one judge on the data that ship, one whose patch is accepted, and one whose
//! patch was tuned on few labels and dies on those that nobody had seen.

use serde_json::Value;
use serde_json::json;

use crate::cli::demo::Demo;
use crate::cli::error::CliError;
use crate::ground::ambient;
use crate::ground::time::Timestamp;
use crate::model::simulate::Double;
use crate::model::simulate::DoubleOptions;
use crate::model::simulate::Script;
use crate::view::Exit;
use crate::view::View;
use crate::workflow::simulate::shipped::ShippedDataset;
use crate::workflow::simulate::shipped::shipped;

const OPENING: &str = "
A judge is a program that scores answers; a rubric corrects it, people's labels say how well. The judge of this story pays
for anything that looks like a source. A patch of the rubric is accepted only when labels that nobody had seen say that
the scores got better.
";
const MENDED: &str = "
FIRST ITERATION  1,500 answers, and a patch that takes back what false sources earn
";
const OVERFITTED: &str = "
SECOND ITERATION  780 answers with noisy labels and no fault left; a cap on long answers, the best of many on dev
";
const DESCENDED: &str = "
A JUDGE'S PROMPT  a simulated judge rewards length; patches that see no answer make its scores agree more with people
";
const RELEASED: &str = "
RELEASE  the accepted patch becomes a prompt that runs; live numbers (made up here) break a guardrail, and it is taken back
";
const REPAIRED: &str = "
A WORKFLOW  it meets invoices of another country, where nobody has labels; small edits mend it by rules that can be checked.
What is right stays sealed until the run has ended; only then does it say what the mending was worth
";
const JUDGED: &str = "
A MODEL AS A JUDGE  behind HTTP, here a double that fails now and then: money is held before anything is sent, each call is
on record, and what was charged is what the double billed
";
const LEFT: &str = "
WHAT IS LEFT  a report, an export; everything verified and computed again
";

/// Prompt 0 of the run.
const PROMPT: &str = "You are the judge of answers to questions about plain facts. You read one question and one answer, and you \
say how well the answer explains what was asked, for a reader who knows nothing of the matter.\n\n\
## Scoring axis\nCoverage: the share of what was asked that the answer explains. The share decides, whatever else it says.\n\n\
## Bias\n<!-- clover: kind=anti_bias editable -->\nTreat every answer alike, whoever wrote it.\n\n\
## Output\nAnswer with one number from 0 to 1 and nothing else, with two decimals. Do not repeat the question.\n";

/// What calls of the double cost, in dollars for a million tokens.
const PRICES: &str =
    "provider,model,mode,input,output,cache_read,cache_write\nhere,m-1-2026-01-15,live,0.25,2,,\n";
/// The same, in millionths of a dollar.
const PRICE_MICRO: (u64, u64) = (250_000, 2_000_000);
/// Every twentieth request finds the double overloaded.
const FAULTS: &str = r#"{"when":{"every":20},"do":{"status":503}}"#;
/// Rows that the model scores.
const ROWS: usize = 60;

/// Seconds until a sealed label has to be shown.
const REVEAL_SECONDS: i64 = 180 * 86_400;

fn text(time: Timestamp) -> String {
    String::from_utf8_lossy(&time.to_text()).into_owned()
}

impl Demo<'_, '_> {
    /// Both iterations, and what they leave.
    pub(super) fn story(&mut self) -> Result<(), CliError> {
        self.say(OPENING)?;
        self.words("key new adversary --role adversary --holder Mal", 0)?;
        let [mended, overfitted] = shipped();
        self.say(MENDED)?;
        let first = self.iteration(&mended)?;
        Self::demand(
            first.facts()["outcome"] == "accepted",
            "the fix is accepted in the first iteration",
        )?;
        self.say(OVERFITTED)?;
        let second = self.iteration(&overfitted)?;
        Self::demand(
            second.facts()["outcome"] == "none_accepted",
            "the overfitted cap is refused on confirm",
        )?;
        self.released(&mended)?;
        self.repaired()?;
        self.judged(&mended)?;
        self.left(&mended)?;
        self.descended()
    }

    /// Writes a data set to a folder of its name.
    fn lay_out(&self, of: &ShippedDataset) -> Result<(), CliError> {
        for file in of.files() {
            let path = self.sandbox.path(of.name).join(file.path);
            if let Some(folder) = path.parent() {
                ambient::create_private_dirs(folder)?;
            }
            ambient::replace(&path, &file.bytes, false)?;
        }
        Ok(())
    }

    /// One data set from its files to the verdict on its patch.
    fn iteration(&mut self, of: &ShippedDataset) -> Result<View, CliError> {
        let name = of.name;
        self.lay_out(of)?;
        let anchors = format!("anchors-{name}");
        let planned = of.plan(&anchors);
        let planned = planned.map_err(|error| CliError::input(error.to_string(), "clover demo"))?;
        let plan = self.sandbox.path(name).join("plan.json");
        ambient::replace(&plan, planned.to_string().as_bytes(), false)?;
        let (t1, _, t2) = of.world().times();
        let (t1, t2) = (text(t1), text(t2));
        let by = text(self.ctx.ambient().now().plus_seconds(REVEAL_SECONDS));
        let import = format!(
            "import cje {name}/responses --experiment {name} --judge builtin --field domain --field level"
        );
        for (words, last) in [
            (
                format!("experiment register {name} --title {name} --purpose demo"),
                0,
            ),
            (
                format!("rubric register {name}/rubric.yaml --experiment {name}"),
                0,
            ),
            (
                format!(
                    "judge run --experiment {name} --judge builtin --rows {name}/responses --rows {name}/anchors --known \
                     {name}/known.json"
                ),
                1,
            ),
            (
                format!(
                    "label design new calib --experiment {name} --purpose calibrate --probability 1"
                ),
                0,
            ),
            (
                format!(
                    "label design new hold --experiment {name} --purpose confirm --probability 1"
                ),
                0,
            ),
            (import.clone(), 0),
            (
                format!("experiment split {name} --seed 1 --t1 {t1} --t2 {t2}"),
                0,
            ),
            (
                format!("{import} --labels=calib --seal hold --reveal-by {by} --yes"),
                1,
            ),
            (format!("confirm seal hold --experiment {name}"), 0),
            (
                format!(
                    "iterate anchors {anchors} --experiment {name} --low anchor_low --high anchor_high"
                ),
                0,
            ),
            (format!("prereg sign {name}/plan.json"), 1),
            (format!("iterate open it-{name} --manifest plan-{name}"), 0),
            (format!("iterate run it-{name} --to cards"), 4),
            (format!("iterate propose it-{name} {name}/patch.yaml"), 1),
            (format!("iterate run it-{name} --yes"), 4),
        ] {
            self.words(&words, last)?;
        }
        self.words(&format!("iterate show it-{name}"), 22)
    }

    /// The accepted patch as a prompt that runs, and the way back when a guardrail breaks.
    fn released(&mut self, accepted: &ShippedDataset) -> Result<(), CliError> {
        self.say(RELEASED)?;
        let (name, patch) = (accepted.name, accepted.patch_id);
        self.words(
            &format!("estimate base --experiment {name} --judge builtin"),
            3,
        )?;
        self.words(&format!("deploy activate {name}@1.0 --judge builtin"), 0)?;
        self.words(&format!("prompt commit {patch}"), 1)?;
        self.words(&format!("prompt diff {name}@1.0 {name}@1.1"), 2)?;
        self.words(&format!("deploy activate {name} --judge builtin"), 0)?;
        let month = r#"record note.recorded --data {"text":"a-month-of-live-answers"}"#;
        self.words(month, 0)?;
        let live = self.sandbox.path(name).join("live.json");
        ambient::replace(&live, live_numbers().to_string().as_bytes(), false)?;
        let check = format!(
            "deploy check {name} --evidence {name}/live.json --by-hand made-up-for-the-demo"
        );
        let checked = self.words(&check, 4)?;
        Self::demand(checked.exit == Exit::Fail, "the breach is rolled back")?;
        self.words(&format!("deploy status {name}"), 3).map(drop)
    }

    /// A broken workflow is mended without labels; then what is right says what that was worth.
    fn repaired(&mut self) -> Result<(), CliError> {
        self.say(REPAIRED)?;
        for words in [
            "key new verifier --role verifier --holder Vera",
            "experiment register shop --title Workflow --purpose demo",
            "workflow new invoices -o shop",
            "repair open shop-1 --experiment shop --program shop/workflow.json --tasks shop/local.jsonl --items 6",
            "repair run shop-1",
        ] {
            self.words(words, 0)?;
        }
        self.words("repair show shop-1 --candidate winner", 6)?;
        let scored = self.words("repair score shop-1", 0)?;
        let (before, after) = (
            &scored.facts()["worth_before_micro"],
            &scored.facts()["worth_after_micro"],
        );
        let gained = before.as_i64().zip(after.as_i64());
        Self::demand(
            gained.is_some_and(|(before, after)| before < after),
            "the mended workflow is worth more by what is right",
        )?;
        let words = ["repair", "show", "shop-1"];
        self.step(&words, 2, 0)?;
        self.words("report repair shop-1 -o shop-1.html", 0)
            .map(drop)
    }

    /// Answers that a model behind HTTP scores: each call is held, sent, answered and settled.
    fn judged(&mut self, of: &ShippedDataset) -> Result<(), CliError> {
        self.say(JUDGED)?;
        let script = Script::parse(FAULTS);
        let script = script.map_err(|error| CliError::input(error.to_string(), "clover demo"))?;
        let options = DoubleOptions {
            judge: None,
            script,
            seed: 7,
            ..DoubleOptions::default()
        };
        let double = Double::start(options);
        let double = double.map_err(|error| {
            let message = format!("127.0.0.1: a double of an endpoint cannot listen: {error}");
            CliError::refused(message, "clover endpoint simulate --help")
        })?;
        ambient::replace(&self.sandbox.path("prices.csv"), PRICES.as_bytes(), false)?;
        let responses = of
            .files()
            .into_iter()
            .find(|file| file.path.ends_with("/base_responses.jsonl"));
        let responses = responses.map_or_else(Vec::new, |file| file.bytes);
        let lines = responses.split_inclusive(|byte| *byte == b'\n').take(ROWS);
        let rows = self.sandbox.path("base_responses.jsonl");
        ambient::replace(&rows, &lines.collect::<Vec<_>>().concat(), false)?;
        let address = double.address();
        for words in [
            "experiment register live --title Live --purpose demo".to_owned(),
            format!(
                "endpoint add sim --url http://{address} --provider here --texts rows --terms kept-nowhere --auth none"
            ),
            "price import prices.csv --name 2026-11 --as-of 2026-11-01 --source demo".to_owned(),
            "budget open judges --usd 1".to_owned(),
        ] {
            self.words(&words, 0)?;
        }
        let ask = "judge ask --judge helpful-1 --endpoint sim --model m-1 --pin m-1-2026-01-15 --rows base_responses.jsonl \
                   --experiment live --account judges --cap-usd 1 -j 8";
        let asked = self.words(ask, 2)?;
        let billed = double.ended();
        let (input, output) = PRICE_MICRO;
        let cost = |tokens: u64, price: u64| tokens.saturating_mul(price);
        let billed: u64 = billed
            .iter()
            .map(|call| (cost(call.input, input) + cost(call.output, output)).div_ceil(1_000_000))
            .sum();
        Self::demand(
            asked.exit == Exit::Done && asked.facts()["settled_usd_micro"] == billed,
            "every answer is scored, and the charge is what was billed",
        )?;
        self.words("budget show judges", 1).map(drop)
    }

    /// A short run that lowers the loss of a judge's prompt, and its page.
    fn descended(&mut self) -> Result<(), CliError> {
        self.say(DESCENDED)?;
        let prompt = self.sandbox.path("judge.md");
        ambient::replace(&prompt, PROMPT.as_bytes(), false)?;
        for words in [
            "key new opt --role optimizer --holder Opal",
            "experiment register tune --title Prompt --purpose demo",
            "label design new read --purpose calibrate --probability 1 --experiment tune",
            "sgd sample trial.jsonl --rows 80",
            "import cje trial.jsonl --labels --experiment tune",
            "sgd open tune-1 --experiment tune --judge sim --simulated --prompt judge.md --steps 4 --repeats 1 --optimizer-key opt",
            "sgd run tune-1 --optimizer-key opt",
        ] {
            self.words(words, 0)?;
        }
        self.words("sgd test tune-1 --custodian custodian", 3)?;
        let shown = self.words("sgd prompt diff tune-1", 4)?;
        Self::demand(!shown.text().is_empty(), "the prompt was changed")?;
        self.words("replay tune-1", 1)?;
        self.words("report sgd tune-1 -o tune-1.html", 0).map(drop)
    }

    /// What the iterations leave: a report, an export, and the proof that all of it can be computed again.
    fn left(&mut self, accepted: &ShippedDataset) -> Result<(), CliError> {
        self.say(LEFT)?;
        self.words(
            &format!("report iteration it-{} -o report.html", accepted.name),
            0,
        )?;
        self.words("export jsonl -o export", 1)?;
        let verified = self.words("verify", 1)?;
        Self::demand(verified.exit == Exit::Done, "the ledger verifies")?;
        let replayed = self.words("replay --all", 1)?;
        Self::demand(
            replayed.exit == Exit::Done && replayed.facts()["gone"] == 0,
            "every decision is computed again",
        )
    }

    /// Runs a command whose words have no spaces in them.
    fn words(&mut self, words: &str, last: usize) -> Result<View, CliError> {
        self.step(&words.split(' ').collect::<Vec<_>>(), 0, last)
    }
}

/// What live rows show a month later: one set of anchors has drifted.
fn live_numbers() -> Value {
    json!({
        "abstention": {"accepted": 0.0, "live": 0.0},
        "anchors": {"anchors": [
            {"drift": 0.002, "policy": "anchor_high", "rows": 500},
            {"drift": 0.021, "policy": "anchor_low", "rows": 500},
        ]},
        "environments": {"environments": []},
        "greens": [], "labels": 60, "out_of_range": {"outside": 3, "rows": 400}, "reopened": 0,
        "shift": {"ks_count": 9, "rows": 400, "w1": 0.01},
    })
}
