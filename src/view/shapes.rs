//! Which facts each verb may answer with: one line a verb. `schema/cli/` holds a JSON Schema per verb, written from the
//! types; a debug build refuses an answer whose type the line of its verb does not list. `at` has none: it answers as the
//! verb that it runs.

use crate::view::access;
use crate::view::analysis;
use crate::view::appended;
use crate::view::appended::Bodies;
use crate::view::appended::BodiesAnd;
use crate::view::appended::Stands;
use crate::view::appended::StandsAnd;
use crate::view::approval;
use crate::view::assume;
use crate::view::audit;
use crate::view::audit_summary;
use crate::view::battery;
use crate::view::blob;
use crate::view::budget;
use crate::view::calibrate;
use crate::view::campaign;
use crate::view::cassette;
use crate::view::checkpoint;
use crate::view::confirm;
use crate::view::deploy;
use crate::view::endpoint;
use crate::view::entry;
use crate::view::estimate;
use crate::view::experiment;
use crate::view::exposure;
use crate::view::family;
use crate::view::gate;
use crate::view::generator;
use crate::view::guide;
use crate::view::ids;
use crate::view::intake;
use crate::view::iterate::AndDue;
use crate::view::iterate::gates;
use crate::view::iterate::ground;
use crate::view::iterate::open;
use crate::view::iterate::show;
use crate::view::iterate::steps;
use crate::view::judge;
use crate::view::judge_ask;
use crate::view::judge_compare;
use crate::view::judge_drift;
use crate::view::judge_noise;
use crate::view::key;
use crate::view::label;
use crate::view::ledger_copy;
use crate::view::manual;
use crate::view::meta;
use crate::view::meta_cells;
use crate::view::model_terms;
use crate::view::ope;
use crate::view::patch;
use crate::view::plan;
use crate::view::prereg;
use crate::view::prompt;
use crate::view::qualify;
use crate::view::recalibrate;
use crate::view::regime;
use crate::view::repair;
use crate::view::repair_candidate;
use crate::view::repair_measures;
use crate::view::replay;
use crate::view::report;
use crate::view::retain;
use crate::view::rubric;
use crate::view::rulebook;
use crate::view::score;
use crate::view::sgd;
use crate::view::signed;
use crate::view::simulate;
use crate::view::split;
use crate::view::status;
use crate::view::surroundings;
use crate::view::sync;
use crate::view::synth;
use crate::view::synth_asked;
use crate::view::taken_in;
use crate::view::transport;
use crate::view::values::OnRecord;
use crate::view::verify;
use crate::view::workflow;

/// Facts that a verb may answer with.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The verb as typed, without `clover`.
    pub verb: &'static str,
    /// Names of the types.
    pub types: fn() -> Vec<&'static str>,
    /// Their JSON Schemas.
    #[cfg(test)]
    schemas: fn(&mut schemars::SchemaGenerator) -> Vec<schemars::Schema>,
}

macro_rules! shapes {
    ($($verb:literal: $($facts:ty)|+;)*) => {
        /// Every verb, in the order of its name.
        pub const SHAPES: &[Shape] = &[$(Shape {
            verb: $verb,
            types: || vec![$(std::any::type_name::<$facts>()),+],
            #[cfg(test)]
            schemas: |generator| vec![$(generator.subschema_for::<$facts>()),+],
        }),*];
    };
}

shapes! {
    "access list": access::AccessList;
    "access release": access::ReleaseFacts;
    "analyze": analysis::AnalysisFacts;
    "append": appended::FileAppended | BodiesAnd<appended::EventsRead>;
    "approve": StandsAnd<approval::ApprovalsGiven> | Bodies;
    "assume list": assume::AssumptionList;
    "assume show": assume::AssumptionShown;
    "assume waive": StandsAnd<assume::WaiverFacts> | Stands | Bodies;
    "audit decisions": audit::DecisionsShown;
    "audit peeks": audit::PeeksShown;
    "audit plans": audit::PlansShown;
    "audit signers": audit::SignersShown;
    "audit summary": audit_summary::AuditSummary;
    "audit transport": OnRecord<transport::AuditsFacts> | transport::WaitingLabels;
    "backup": ledger_copy::BackedUp;
    "battery close": AndDue<battery::ExploitsMeasured>;
    "battery list": battery::ExploitList;
    "battery run": AndDue<battery::BatteryRan>;
    "blob get": blob::BlobRead;
    "blob list": blob::BlobList;
    "blob put": blob::BlobStored;
    "budget list": budget::AccountList;
    "budget open": Stands | Bodies;
    "budget show": budget::AccountShown;
    "calibrate apply": calibrate::CalibratedScores;
    "calibrate list": calibrate::CalibratorList;
    "calibrate show": calibrate::CalibratorShown;
    "campaign status": campaign::CampaignShown;
    "cassette check": cassette::CassetteContent;
    "cassette export": cassette::CassetteWritten | cassette::CassetteIncomplete;
    "checkpoint compare": checkpoint::CheckpointComparison;
    "checkpoint consistency": checkpoint::ConsistencyProof;
    "checkpoint pin": checkpoint::PinFacts;
    "checkpoint show": checkpoint::SignedNote;
    "compare": OnRecord<estimate::ContrastsFacts>;
    "completions": manual::Script;
    "confirm seal": confirm::LabelsAccepted;
    "confirm status": confirm::ConfirmStatus;
    "confirm unseal": confirm::LabelsOpened;
    "demo": surroundings::Demonstration;
    "deploy activate": Stands | Bodies;
    "deploy check": StandsAnd<deploy::Guardrails> | BodiesAnd<deploy::Guardrails>;
    "deploy recalibrate": StandsAnd<recalibrate::RecalibrationFacts> | recalibrate::RecalibrationRehearsal;
    "deploy rollback": Stands | Bodies;
    "deploy status": deploy::DeploymentList;
    "doctor": surroundings::Checks;
    "endpoint add": Stands | Bodies;
    "endpoint list": model_terms::EndpointList;
    "endpoint probe": endpoint::EndpointProbe;
    "endpoint show": model_terms::EndpointShown;
    "endpoint simulate": endpoint::DoubleEnded;
    "erase": StandsAnd<blob::ErasureFacts> | Bodies;
    "estimate": OnRecord<estimate::EstimatesFacts> | OnRecord<ope::OpeFacts>;
    "experiment close": Stands | Bodies;
    "experiment list": experiment::ExperimentList;
    "experiment register": Stands | StandsAnd<rubric::RubricRegistration> | Bodies;
    "experiment split": split::SplitFormed;
    "export": ledger_copy::ExportFacts | ledger_copy::BundleFacts;
    "exposure list": exposure::ExposedUnits;
    "exposure open": StandsAnd<exposure::ExposedUnits> | Bodies;
    "family close": StandsAnd<family::Holds> | Bodies;
    "family list": family::FamilyList;
    "family open": Stands | Bodies;
    "family show": family::FamilyShown;
    "gate continue": Stands | Bodies;
    "gate decide": StandsAnd<gate::steps::GateEnd> | Bodies;
    "gate estimate": StandsAnd<gate::steps::RecordedEstimate> | Bodies | gate::steps::DrawnUnits;
    "gate list": gate::list::GateList;
    "gate look": StandsAnd<gate::steps::LookFacts> | Bodies;
    "gate observe": gate::steps::Observation | Bodies;
    "gate open": StandsAnd<gate::open::OpenGate> | Bodies;
    "gate plan": gate::draft::GateDraft;
    "gate promote": StandsAnd<gate::steps::PromotedCandidate> | Bodies;
    "gate revoke": Stands | Bodies;
    "gate root": gate::open::UnitsRoot;
    "gate show": gate::facts::GateFacts;
    "gate simulate": gate::simulate::GateSimulation;
    "generator list": generator::RunList;
    "generator objective": StandsAnd<generator::StepAnswered>;
    "generator open": Stands | Bodies;
    "generator rollback": Stands | Bodies;
    "generator show": generator::RunShown;
    "generator validate": StandsAnd<generator::RunValidated> | BodiesAnd<generator::RunValidated>;
    "guide": guide::Guide;
    "ids": ids::IdList;
    "import cje": intake::FilesImported | intake::FilesRehearsed;
    "import csv": intake::FilesImported | intake::FilesRehearsed;
    "import events": appended::FileAppended | Bodies;
    "import inspect": intake::FilesImported | intake::FilesRehearsed | taken_in::RowsTakenIn;
    "import labels": taken_in::LabelsTakenIn;
    "import langfuse": intake::FilesImported | intake::FilesRehearsed | taken_in::LabelsTakenIn;
    "import ledger": ledger_copy::LedgerImported | verify::Verification;
    "import logged": intake::FilesImported | intake::FilesRehearsed;
    "import openai-evals": intake::FilesImported | intake::FilesRehearsed;
    "import otel": intake::FilesImported | intake::FilesRehearsed;
    "import promptfoo": intake::FilesImported | intake::FilesRehearsed | taken_in::RowsTakenIn;
    "import rows": taken_in::RowsTakenIn;
    "init": surroundings::NewLedger;
    "iterate accept": AndDue<steps::AcceptedPatches> | AndDue<steps::NoStep>;
    "iterate anchors": Stands | Bodies;
    "iterate audit": AndDue<ground::SliceAudit> | AndDue<steps::NoStep>;
    "iterate cards": AndDue<ground::CardList> | AndDue<steps::NoStep>;
    "iterate close": AndDue<steps::IterationClosing> | AndDue<steps::NoStep> | Stands | Bodies;
    "iterate confirm": AndDue<gates::ConfirmFacts> | AndDue<steps::NoStep>;
    "iterate fit": AndDue<ground::CalibratorFit> | AndDue<steps::NoStep>;
    "iterate gate": AndDue<gates::DevGates> | AndDue<steps::NoStep>;
    "iterate list": open::IterationList;
    "iterate open": StandsAnd<open::IterationOpening> | BodiesAnd<open::IterationOpening>;
    "iterate propose": steps::ProposedAll;
    "iterate run": AndDue<steps::Ran>;
    "iterate score": AndDue<steps::RescoreCounts> | AndDue<steps::UnaskedJudge> | AndDue<steps::NoStep>;
    "iterate seal": AndDue<gates::SealedHypotheses> | AndDue<steps::NoStep>;
    "iterate show": show::IterationShown;
    "judge ask": judge_ask::JudgeAskCounts | judge_ask::JudgeAskOutlook;
    "judge compare": judge_compare::JudgesCompared;
    "judge drift": judge_drift::DriftFacts;
    "judge list": judge::JudgeList;
    "judge noise": judge_noise::JudgeNoiseFound;
    "judge rescore-check": judge::JudgeStability;
    "judge run": judge::JudgeRun;
    "judge stop": judge_ask::JudgeRunStop;
    "key admit": StandsAnd<key::AskedFor> | BodiesAnd<key::AskedFor>;
    "key compromise": Stands | Bodies;
    "key export": key::KeyExport | key::LogKey;
    "key list": key::KeyList;
    "key new": StandsAnd<key::KeyMade> | Bodies;
    "key request": key::RequestedKey;
    "key retire": Stands | Bodies;
    "key rotate-log": StandsAnd<key::LogKey> | Bodies;
    "key show": key::KeyShown;
    "label design list": label::DesignList;
    "label design new": Stands | Bodies;
    "log": entry::EntryList;
    "man": manual::ManPage | manual::ManPages;
    "meta experiment": meta_cells::MetaPlanShown;
    "meta run": meta::MetaUpdateShown;
    "meta show": meta::MetaUpdateShown | meta_cells::MetaPlanShown | meta::MetaLineage;
    "patch check": patch::PatchChecked;
    "patch diff": patch::PatchChecked;
    "patch list": patch::PatchList;
    "patch new": patch::NewPatch;
    "patch objective": AndDue<patch::Objective>;
    "patch propose": StandsAnd<patch::PatchProposal> | Bodies;
    "patch review": StandsAnd<patch::PatchReview> | Bodies;
    "patch withdraw": Stands | Bodies;
    "plan audit": plan::PlanFacts;
    "plan budget": plan::PlanFacts;
    "plan iteration": plan::PlanFacts;
    "plan labels": plan::PlanFacts;
    "prereg amend": StandsAnd<prereg::sign::Amendment> | BodiesAnd<prereg::sign::Class>;
    "prereg check": prereg::file::CheckedManifest | prereg::peer::PeerChecked;
    "prereg deviation": Stands | Bodies;
    "prereg diff": prereg::record::Difference;
    "prereg new": prereg::file::NewPlan;
    "prereg plan reveal": StandsAnd<prereg::sign::RevealedPlan> | Bodies;
    "prereg plan seal": Stands | Bodies;
    "prereg show": prereg::record::ManifestShown;
    "prereg sign": StandsAnd<prereg::sign::SignedVersion> | BodiesAnd<prereg::sign::SignedVersion> | Bodies;
    "price import": Stands | Bodies;
    "price list": model_terms::PriceTableList;
    "price show": model_terms::PriceTableShown;
    "prompt checkout": prompt::PromptFiles;
    "prompt commit": StandsAnd<prompt::PromptCommit> | Bodies;
    "prompt diff": rubric::RubricDiff;
    "prompt log": prompt::PromptLog;
    "prompt show": prompt::PromptShown;
    "prove": entry::InclusionProof | entry::ProofChecked;
    "qualify": qualify::QualifyFacts;
    "record": StandsAnd<appended::KeptIn> | Stands | Bodies;
    "regime list": regime::RegimeList;
    "regime select": Stands | Bodies;
    "repair measure": repair_measures::RepairFindings;
    "repair open": repair::RepairRunShown | repair::RepairPlanned;
    "repair pair": repair::RepairRunShown;
    "repair run": repair::RepairRunShown;
    "repair score": repair::RepairRunShown;
    "repair show": repair::RepairRunShown | repair_candidate::RepairCandidateShown | repair_candidate::RepairTraceShown;
    "repair status": repair::RepairList;
    "repair stop": repair::RepairRunShown;
    "replay": replay::ReplayFacts | replay::RunReplayFacts;
    "report annex-iv": report::documents::DocumentFacts;
    "report change": report::documents::DocumentFacts;
    "report coverage": report::documents::DocumentFacts;
    "report erasure": report::documents::DocumentFacts;
    "report estimate": report::documents::DocumentFacts;
    "report experiment": report::documents::DocumentFacts;
    "report expiry": report::documents::DocumentFacts;
    "report gate": report::documents::DocumentFacts;
    "report gdpr": report::documents::DocumentFacts;
    "report iso23894": report::documents::DocumentFacts;
    "report iso42001": report::documents::DocumentFacts;
    "report iteration": report::IterationReport | StandsAnd<report::PublicationFacts> | BodiesAnd<report::PublicationFacts>;
    "report list": report::ReportList;
    "report part11": report::documents::DocumentFacts;
    "report pccp": report::documents::DocumentFacts;
    "report repair": report::documents::DocumentFacts;
    "report retention": report::documents::DocumentFacts;
    "report sgd": report::documents::DocumentFacts;
    "report show": report::ReportShown;
    "report soc2": report::documents::DocumentFacts;
    "report sr26-2": report::documents::DocumentFacts;
    "report tevv": report::documents::DocumentFacts;
    "report trail": report::documents::DocumentFacts;
    "restore": ledger_copy::LedgerRestored;
    "retain list": retain::RetainList;
    "retain set": Stands | Bodies;
    "rubric dead": rubric::RulesFired;
    "rubric diff": rubric::RubricDiff;
    "rubric list": rubric::RubricList;
    "rubric new": rubric::NewRubric;
    "rubric register": StandsAnd<rubric::RubricRegistration> | Bodies;
    "rubric show": rubric::RubricShown;
    "rulebook adopt": Stands | Bodies;
    "rulebook show": rulebook::RulebooksShown;
    "schema": manual::KindList | manual::KindSchema;
    "score list": score::ScoreList;
    "score show": score::ScoreShown;
    "seal accept": Stands | Bodies;
    "seal label": Stands | Bodies;
    "seal reveal": StandsAnd<label::LabelValue>;
    "sgd approve": sgd::SgdRunShown;
    "sgd export": sgd::prompts::SgdExported;
    "sgd open": sgd::SgdRunShown;
    "sgd plan": sgd::planned::SgdPlanned;
    "sgd promote": sgd::promotion::SgdPromotionShown | sgd::promotion::SgdConfirmRemainder;
    "sgd prompt check": sgd::prompts::SgdPromptChecked;
    "sgd prompt diff": sgd::prompts::SgdPromptDiff;
    "sgd prompt log": sgd::prompts::SgdPromptLog;
    "sgd prompt show": sgd::SgdPromptShown;
    "sgd run": sgd::SgdRunShown | sgd::planned::SgdRemainder;
    "sgd sample": sgd::SgdSample;
    "sgd show": sgd::SgdRunShown | sgd::SgdPromptShown;
    "sgd status": sgd::SgdList;
    "sgd stop": sgd::SgdRunShown;
    "sgd test": sgd::SgdRunShown;
    "show": entry::EntryShown;
    "sign": signed::SignedEvents | Stands | Bodies;
    "simulate dataset": simulate::Dataset;
    "simulate iteration": simulate::iteration::SimulatedIteration;
    "simulate truth": simulate::Truth;
    "status": status::Status;
    "submit": signed::SubmissionFacts;
    "sync": sync::PublisherSync | sync::ReaderSync;
    "synth list": synth::SynthList;
    "synth run": synth::SynthRunShown | synth_asked::SynthOutlookShown;
    "synth show": synth::SynthRunShown;
    "synth stop": synth::SynthRunShown;
    "synth view": synth::ShownView;
    "use": experiment::CurrentExperiment;
    "verify": verify::Verification;
    "workflow check": workflow::WorkflowChecked;
    "workflow diff": workflow::WorkflowDiff;
    "workflow new": workflow::WorkflowBegun;
    "workflow run": workflow::WorkflowRan;
    "workflow show": workflow::WorkflowShown;
}

/// Whether a verb may answer with facts of this type.
pub fn is_answer(verb: &str, shape: &str) -> bool {
    let found = SHAPES.iter().find(|of| of.verb == verb);
    found.is_some_and(|of| (of.types)().contains(&shape))
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test writes and reads the schemas"
)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    /// What stands in `data` where a verb refuses or fails: the same for every verb.
    fn refusal() -> Value {
        json!({
            "description": "Why the verb gave no answer: `ok` is false then. What else it says stands beside.",
            "type": "object",
            "required": ["message"],
            "properties": {"message": {"type": "string", "description": "The reason, for people."}}
        })
    }

    /// The schema of everything that `--json` prints of a verb.
    fn schema(of: &Shape) -> Value {
        let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
        let facts = (of.schemas)(&mut generator);
        let mut facts: Vec<Value> = facts.into_iter().map(Value::from).collect();
        facts.push(json!({"$ref": "#/$defs/Refusal"}));
        let mut definitions = generator.take_definitions(true);
        definitions.insert("Refusal".to_owned(), refusal());
        let text = json!({"type": "string"});
        let texts = json!({"type": "array", "items": text});
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": format!("clover {} --json", of.verb),
            "description": "What the verb prints where it answers. A refusal has the same members: `ok` is false, `data` says why in `message`.",
            "type": "object",
            "additionalProperties": false,
            "required": ["ok", "verdict", "exit", "events", "checkpoint", "data", "warnings", "next"],
            "properties": {
                "ok": {"type": "boolean", "description": "Whether `exit` is 0."},
                "verdict": {"type": "string", "description": "How it ended, in one word."},
                "exit": {"type": "integer", "description": "The exit code."},
                "events": {"type": "array", "items": text, "description": "Ids of the events that it is about."},
                "checkpoint": {
                    "description": "The checkpoint after it.",
                    "anyOf": [
                        {"type": "null"},
                        {"type": "object", "required": ["size", "root"], "additionalProperties": false,
                         "properties": {"size": {"type": "integer"}, "root": text}}
                    ]
                },
                "data": {"anyOf": facts},
                "warnings": texts,
                "next": {"type": "array", "items": text, "description": "Commands to type next."}
            },
            "$defs": definitions
        })
    }

    #[test]
    fn the_schema_of_every_verb_stands_in_its_file() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/cli");
        let mut names = Vec::new();
        for of in SHAPES {
            let name = format!("{}.json", of.verb.replace(' ', "-"));
            let text = serde_json::to_string_pretty(&schema(of)).unwrap() + "\n";
            let path = format!("{folder}/{name}");
            if std::env::var_os("UPDATE").is_some() {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(&path, &text).unwrap();
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                kept == text,
                "{path} differs from its types: UPDATE=1 cargo test --lib shapes"
            );
            names.push(name);
        }
        names.sort();
        let files = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn verbs_stand_once_in_the_order_of_their_names() {
        let verbs: Vec<_> = SHAPES.iter().map(|of| of.verb).collect();
        assert!(verbs.is_sorted_by(|one, two| one < two), "{verbs:?}");
    }
}
