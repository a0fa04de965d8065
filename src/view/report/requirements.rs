//! What frameworks ask of records: one line a requirement, with the kinds of entries that are evidence for it, and what no
//! entry of a ledger can show. The rows are our reading of each text; its own words bind.

use crate::event::Kind;
use crate::event::Kind as K;
use crate::report::document::ReportKind;

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// The report that lists it.
    pub report: ReportKind,
    /// Its place in the text.
    pub code: &'static str,
    /// What it asks, in short.
    pub asks: &'static str,
    /// Kinds of entries that are evidence for it; without any it is not a ledger's to show.
    pub kinds: &'static [Kind],
    /// What these entries show of it, or why it is not covered.
    pub says: &'static str,
    /// What of it no entry shows, whatever is on record; empty where nothing is known to be left.
    pub lacks: &'static str,
}

macro_rules! requirements {
    ($($report:ident $code:literal $asks:literal [$($kind:ident)*] $says:literal $(but $lacks:literal)?;)*) => {
        /// Every requirement, in the order of its text. The next one goes here.
        pub const REQUIREMENTS: &[Requirement] = &[$(Requirement {
            report: ReportKind::$report,
            code: $code,
            asks: $asks,
            kinds: &[$(K::$kind),*],
            says: $says,
            lacks: concat!($($lacks)?),
        }),*];
    };
}

requirements! {
    // NIST AI RMF 1.0, Measure and Manage.
    Tevv "MEASURE 1.1" "Metrics are chosen for the most significant risks, and what is not measured is documented."
        [ManifestRegistered BridgeAssessed SdpVersionRegistered AssumptionWaived]
        "Plans name their metric before data are seen; assumptions say what is not measured.";
    Tevv "MEASURE 1.2" "Appropriateness of metrics and effectiveness of controls are assessed and updated."
        [PrenticeChecked LabelProcessAudited ResidualsAudited JudgeCompared]
        "Checks of whether scores stand for labels, and of how labels came about.";
    Tevv "MEASURE 1.3" "Internal experts who did not serve as developers, or independent assessors, are involved."
        [KeyAdded ReviewRecorded ApprovalGranted ApprovalRefused AuditAttested]
        "Who reviewed and approved, by key and role; the appendix of people shows which roles one person holds.";
    Tevv "MEASURE 2.1" "Test sets, metrics and details about the tools used are documented."
        [DataIngested SplitsFormed LabelDesignRegistered AnchorSetRegistered JudgeRegistered RubricRegistered]
        "Where rows come from, how they were split, what was to be labelled, and which judge with which rubric scored them.";
    Tevv "MEASURE 2.3" "Performance is measured for conditions similar to deployment."
        [EstimateRecorded ContrastRecorded TransportTested EnvironmentsTested]
        "Values with intervals, and audits of whether calibration holds elsewhere.";
    Tevv "MEASURE 2.4" "The system and its components are monitored when in production."
        [GuardrailChecked JudgeDriftChecked DeploymentRolledBack]
        "Checks of guardrails and of the judge on live rows, and rollbacks.";
    Tevv "MEASURE 2.5" "Validity and reliability are demonstrated, and limits of generalisation documented."
        [GateDecided GateEvaluated CoverageChecked TransportTested RegimeSelected]
        "Decided gates and criteria, coverage of scores by labels, and where a calibrator may be used.";
    Tevv "MEASURE 2.13" "Effectiveness of the metrics and of the measuring itself is evaluated."
        [OuaEstimated CoverageChecked JudgeDriftChecked JudgeCompared QualificationRecorded BatteryEvaluated]
        "How the judge itself does: uncertainty of calibration, drift, agreement, attacks, and this program on reference numbers.";
    Tevv "MEASURE 3.1" "Existing, unanticipated and emergent risks are tracked."
        [ExploitDiscovered ScoreConflict BatteryEvaluated]
        "Exploits that were found, judges that contradict themselves, batteries of attacks.";
    Tevv "MEASURE 3.3" "Feedback of end users and of those affected is gathered."
        []
        "feedback is not taken in by this ledger; labels of raters are no feedback of users";
    Tevv "MEASURE 4.2" "Results are informed by input of domain experts, whether performance is consistent as intended."
        [LabelRecorded LabelRevealed ReviewRecorded]
        "Labels of people and their reviews.";
    Tevv "MEASURE 4.3" "Measured improvements or declines are identified and documented."
        [PatchAccepted PatchRejected PromotionIssued PromotionRevoked GateDecided]
        "Patches that were accepted or rejected, with their change of the squared error, and decided gates.";
    Tevv "MANAGE 4.1" "Post-deployment monitoring, with appeal, override, decommissioning and change management."
        [DeploymentActivated DeploymentRolledBack GuardrailChecked RecalibrationCompleted]
        "Activations, checks and rollbacks of judges."
        but "appeals of users";

    // Regulation (EU) 2024/1689, with its Annex IV.
    AnnexIv "Art. 9(6)-(8)" "Testing before placing on the market, against prior defined metrics and probabilistic thresholds."
        [IterationOpened ManifestRegistered SplitsFormed GateOpened GateEvaluated GateDecided]
        "Plans with metrics and thresholds stand before the data they judge: compare the positions of plan and look.";
    AnnexIv "Annex IV(2)(a)-(e)" "Design, architecture, computational resources and data sheets of the system itself."
        []
        "the ledger governs how a system is evaluated and holds nothing of how it was built";
    AnnexIv "Annex IV(2)(f)" "Pre-determined changes, with the technical solutions that keep performance."
        [IterationOpened PatchProposed PatchAccepted PatchRejected PromptCommitted]
        "Patches within a fixed grammar, the criteria that judged them, and what was committed."
        but "changes of the system itself: these are changes of the judge";
    AnnexIv "Annex IV(2)(g)" "Validation and testing procedures, data, metrics; test logs and reports dated and signed by the responsible persons."
        [ManifestRegistered DataIngested GateDecided ReportPublished ApprovalGranted ApprovalRefused]
        "Signed plans, data, decisions and reports; signatures of people with printed name and meaning are in the appendix.";
    AnnexIv "Art. 12(1)-(2)" "Automatic recording of events for risk, substantial modification and monitoring."
        [GuardrailChecked JudgeDriftChecked DeploymentActivated DeploymentRolledBack DataIngested]
        "Events of the evaluation."
        but "the run-time log of the system itself";
    AnnexIv "Art. 12(3)" "For biometric identification: period of use, reference database, matched input, verifying persons."
        []
        "this ledger records no use of a biometric system";
    AnnexIv "Art. 13(3), 15(3)" "Declared levels of accuracy and their metrics."
        [EstimateRecorded ContrastRecorded CoverageChecked TransportTested]
        "Calibrated values with intervals, and where a level is refused.";
    AnnexIv "Art. 14(4)-(5)" "People can override; for some systems two persons verify."
        [ApprovalGranted ApprovalRefused AssumptionWaived AssumptionCountersigned DeploymentRolledBack]
        "Approvals and refusals by key, waivers by two keys, rollbacks by a person.";
    AnnexIv "Art. 17(1)(a), (d), (f)" "Quality management: modifications, test procedures and their frequency, data management."
        [PatchProposed PatchAccepted PatchRejected PatchWithdrawn LabelDesignRegistered DataIngested]
        "The life of each change, what was labelled and why, where data come from.";
    AnnexIv "Art. 17(1)(h), (k), (m)" "Quality management: post-market monitoring, record-keeping, accountability."
        [GuardrailChecked BridgeAssessed KeyAdded KeyRetired RetentionSet]
        "Checks in production, keys with roles, and how long records are kept.";
    AnnexIv "Art. 18" "Technical documentation is kept for 10 years."
        [RetentionSet]
        "How long each class is kept, and on which basis: whether that is 10 years is for the reader to compare.";
    AnnexIv "Art. 19(1), 26(6)" "Logs are kept for a fit period, at least six months."
        [RetentionSet]
        "How long each class is kept. The log itself is append-only: entries are not deleted from it.";
    AnnexIv "Art. 20, 72, 73" "Corrective action, post-market monitoring, reports of serious incidents."
        [DeploymentRolledBack ExploitDiscovered GuardrailChecked]
        "Rollbacks, exploits and breaches."
        but "reports of incidents to authorities";

    // 21 CFR Part 11, with EU GMP Annex 11.
    Part11 "11.10(a)" "Validation of systems, to discern invalid or altered records."
        [QualificationRecorded AuditAttested]
        "This program on reference numbers, and verifications that an auditor signed. clover verify discerns altered records.";
    Part11 "11.10(b)" "Accurate and complete copies, in human readable and electronic form."
        [ReportPublished]
        "Published reports; clover export and this report make copies of both forms.";
    Part11 "11.10(c)" "Protection of records, to enable accurate retrieval throughout their retention."
        [RetentionSet]
        "How long classes are kept."
        but "backups and media";
    Part11 "11.10(d)" "Access limited to authorised individuals."
        [KeyAdded KeyRetired KeyCompromised DataRead]
        "Keys with roles, their end, and each release of data."
        but "access to the machine itself";
    Part11 "11.10(e)" "Secure, computer-generated, time-stamped audit trails that do not obscure earlier entries."
        [LedgerCreated RulebookAdopted LogKeyRotated]
        "The log is the trail: every entry has its time, signer and position, and none replaces another. clover report trail lists it.";
    Part11 "11.10(f)" "Operational checks to enforce permitted sequencing of steps."
        [ManifestRegistered ExposureOpened CandidatesSealed ConfirmUnsealed]
        "Steps that the rules admit in one order alone, judged again by clover verify.";
    Part11 "11.10(g)" "Authority checks, so that only authorised individuals sign or alter."
        [KeyAdded PolicyAdopted]
        "Roles of keys and the policy of separation, asked at each append.";
    Part11 "11.10(k)" "Change control of systems documentation."
        [RubricRegistered PatchAccepted PromptCommitted ManifestAmended]
        "Versions of rubrics and plans."
        but "documents outside of the ledger";
    Part11 "11.50" "Signed records show the printed name, the date and time, and the meaning of the signature."
        [ApprovalGranted ApprovalRefused]
        "The appendix of signatures shows all three, with the entry that holds the signed bytes.";
    Part11 "11.70" "Signatures are linked to their records."
        [ApprovalGranted ApprovalRefused ReviewRecorded AuditAttested]
        "Each signature covers the exact bytes of its entry, which name the entry that it is about.";
    Part11 "11.100" "Signatures are unique to one individual, whose identity is verified."
        [KeyAdded]
        "Each key is registered to one holder."
        but "verifying who a person is";
    Part11 "11.200" "Two distinct components, such as identification and password."
        []
        "a key file and its passphrase are two components, and how a person keeps them is not recorded";
    Part11 "11.300" "Controls for identification codes: uniqueness, loss management, testing of devices."
        [KeyAdded KeyRetired KeyCompromised]
        "Keys are added, retired and declared compromised."
        but "testing of devices";
    Part11 "Annex 11: 7, 17" "Data storage and archiving."
        [RetentionSet SubjectErased]
        "What is kept for how long, and what was erased on which basis.";
    Part11 "Annex 11: 9" "Audit trails, with the reason for changes."
        [ManifestAmended ManifestDeviated PatchWithdrawn DeploymentRolledBack]
        "Each change names its reason.";
    Part11 "Annex 11: 12 (draft)" "Audit trails are reviewed."
        [ReviewRecorded AuditAttested]
        "Reviews name the range that was read, and what was found.";
    Part11 "Annex 11: 14" "Electronic signatures are linked to their record, with date and time."
        [ApprovalGranted ApprovalRefused]
        "As under 11.50 and 11.70.";
    Part11 "Annex 11: 16" "Business continuity."
        []
        "continuity of operation is outside of a ledger";
    Part11 "ALCOA++" "Attributable, legible, contemporaneous, original, accurate; complete, consistent, enduring, available, traceable."
        [DataIngested ScoreRecorded LabelRecorded]
        "Attributable by key, contemporaneous by the clock of the ledger, original by digest, traceable by position."
        but "accuracy and completeness: no signature proves them";

    // SOC 2: trust services criteria 2017, points of focus revised 2022.
    Soc2 "CC4.1" "Ongoing and separate evaluations."
        [AuditAttested ReviewRecorded GuardrailChecked JudgeDriftChecked]
        "Verifications, reviews and checks, as a population with their positions.";
    Soc2 "CC6.1" "Logical access to protected information is restricted."
        [DataRead LabelSealed ConfirmUnsealed]
        "Each release of data and each opening of sealed labels."
        but "access to machines";
    Soc2 "CC6.2" "Access is granted before use, and removed when it is no longer authorised."
        [KeyAdded KeyRetired]
        "Keys that were added and retired.";
    Soc2 "CC6.3" "Access follows roles, least privilege and segregation of duties."
        [KeyAdded PolicyAdopted LedgerCreated]
        "Roles of each key and the policy of separation; the appendix of people shows which roles one person holds.";
    Soc2 "CC7.2" "Anomalies are monitored."
        [ScoreConflict JudgeDriftChecked GuardrailChecked ExploitDiscovered]
        "Contradictions of judges, drift, guardrails, exploits.";
    Soc2 "CC7.3" "Security events are evaluated."
        [KeyCompromised DeploymentRolledBack]
        "Keys that were declared compromised, and rollbacks."
        but "handling of incidents beyond keys and rollbacks";
    Soc2 "CC8.1" "Changes are authorised, tested, approved and implemented."
        [PatchProposed GateEvaluated PatchAccepted ApprovalGranted PromptCommitted DeploymentActivated]
        "The population of changes from proposal to deployment; clover report change gives the record of one.";
    Soc2 "PI1.1" "Information about objectives of processing is of quality."
        [ManifestRegistered LabelDesignRegistered]
        "Plans and designs that say what is to be measured.";
    Soc2 "PI1.2" "Inputs are complete and accurate."
        [DataIngested ScoreScaleDeclared LabelScaleDeclared]
        "What was taken in, under which root of rows."
        but "that an import is all there was";
    Soc2 "PI1.3" "Processing is complete, valid, accurate and timely."
        [EstimateRecorded CalibratorFitted ScoresRecomputed QualificationRecorded]
        "Computed values, which clover verify --recompute computes again.";
    Soc2 "PI1.4" "Output is delivered completely and accurately."
        [ReportPublished]
        "Reports with the digest of their bytes.";
    Soc2 "PI1.5" "Inputs, items in processing and outputs are stored completely and accurately."
        [RetentionSet SubjectErased]
        "What is kept and what was erased.";

    // ISO/IEC 42001:2023, clauses and Annex A. Numbers differ between summaries: check the standard.
    Iso42001 "cl. 7.5" "Documented information is created, updated and controlled."
        [ManifestRegistered ManifestAmended RubricRegistered ReportPublished]
        "Plans, rubrics and reports, each with its versions, signers and dates.";
    Iso42001 "cl. 9.1" "Monitoring, measurement, analysis and evaluation."
        [EstimateRecorded GateDecided GuardrailChecked JudgeDriftChecked]
        "What was measured, when, on which plan, and what was decided on it.";
    Iso42001 "cl. 9.2" "Internal audit."
        [ReviewRecorded AuditAttested]
        "Reviews of ranges of the log, and verifications that an auditor signed.";
    Iso42001 "cl. 10.2" "Nonconformity and corrective action."
        [DeploymentRolledBack ExploitDiscovered PromotionRevoked ScoreConflict]
        "Rollbacks, exploits, revoked promotions and contradictions, each with its reason.";
    Iso42001 "A.6.2.4" "Verification and validation of the AI system."
        [GateDecided GateEvaluated TransportTested EnvironmentsTested QualificationRecorded]
        "Tests with thresholds that were fixed before, and their verdicts.";
    Iso42001 "A.6.2.6" "Operation and monitoring of the AI system."
        [DeploymentActivated GuardrailChecked JudgeDriftChecked RecalibrationCompleted]
        "What runs, and checks of it on live rows.";
    Iso42001 "A.6.2.7" "Technical documentation of the AI system."
        [JudgeRegistered RubricRegistered ManifestRegistered ReportPublished]
        "Documentation of judge and evaluation."
        but "documentation of the system itself";
    Iso42001 "A.6.2.8" "Recording of event logs."
        [LedgerCreated RulebookAdopted LogKeyRotated]
        "The log of the evaluation, signed and append-only."
        but "the run-time log of the system";
    Iso42001 "A.7.4" "Quality of data for AI systems."
        [SplitsFormed LabelProcessAudited LabelDesignRegistered ScoreConflict]
        "How rows were split, how labels were drawn and came about.";
    Iso42001 "A.7.5" "Data provenance."
        [DataIngested LabelDesignRegistered]
        "Each file that was taken in, by digest, with the root of its rows.";
    Iso42001 "A.8.3" "External reporting of adverse impacts by interested parties."
        []
        "reports of outside parties are not taken in by this ledger";
    Iso42001 "A.8.4" "Communication of incidents to users."
        []
        "messages to users are outside of a ledger, and no event of the catalogue is one";

    // ISO/IEC 23894:2023, clause 6.
    Iso23894 "cl. 6.4" "Risks are identified, analysed and evaluated."
        [SlicesClassified BatteryEvaluated ExploitDiscovered BridgeAssessed LabelProcessAudited]
        "Stakes by slice, attacks, exploits, and assessments of what labels stand for.";
    Iso23894 "cl. 6.5" "Risks are treated."
        [PatchAccepted AssumptionWaived AssumptionCountersigned RegimeSelected DeploymentRolledBack]
        "Accepted patches, waivers of two keys with an end, restricted use of scores, rollbacks.";
    Iso23894 "cl. 6.6" "Risks are monitored and reviewed."
        [GuardrailChecked JudgeDriftChecked ReviewRecorded]
        "Checks of what runs, and reviews.";
    Iso23894 "cl. 6.7" "Risks are recorded and reported."
        [ReportPublished AuditAttested ExploitDiscovered]
        "Published reports and attestations; the register is an extract from the log.";

    // FDA: predetermined change control plans, final guidance of August 2025; GMLP, principle 10.
    Pccp "Description of modifications" "The planned modifications, each specific and verifiable."
        [IterationOpened RubricRegistered PatchProposed]
        "Patches within a fixed grammar, by family."
        but "modifications of a device: these are of the judge";
    Pccp "Modification protocol" "Methods of data, retraining, performance evaluation and update, with acceptance criteria."
        [ManifestRegistered IterationOpened GateEvaluated CandidatesSealed ConfirmUnsealed]
        "Plans with thresholds and splits, and criteria P0 to P10 as they were applied.";
    Pccp "Impact assessment" "Benefits and risks of each modification, and of their cumulation."
        [GateEvaluated BatteryEvaluated ScoresRecomputed TransportTested]
        "Criteria on slices, attacks and other environments."
        but "risks to patients";
    Pccp "GMLP 10" "Deployed models are monitored, and risks of retraining managed."
        [GuardrailChecked JudgeDriftChecked RecalibrationCompleted DeploymentRolledBack]
        "Checks of what runs, recalibrations, rollbacks.";
    Pccp "Labelling" "Users are told of modifications and of their performance."
        []
        "what users are told is outside of a ledger";

    // SR 26-2, which took the place of SR 11-7 on 17 April 2026. Generative AI is out of its scope; risk management is still expected.
    Sr262 "Development" "Purpose, design, data and limits of a model are documented."
        [JudgeRegistered RubricRegistered CalibratorFitted DataIngested]
        "Judges with model, prompt and decoding, rubrics, calibrators and their data.";
    Sr262 "Validation" "A model is validated in proportion to its materiality."
        [TransportTested EnvironmentsTested JudgeCompared GateDecided QualificationRecorded]
        "Audits on fresh labels, comparisons, decided gates, and this program on reference numbers.";
    Sr262 "Monitoring" "Performance is monitored while a model is in use."
        [JudgeDriftChecked GuardrailChecked RecalibrationCompleted]
        "Drift on anchors, guardrails, recalibrations.";
    Sr262 "Effective challenge" "Competent people who did not develop a model challenge it."
        [ReviewRecorded ApprovalGranted ApprovalRefused PatchRejected AuditAttested]
        "Reviews, approvals, refusals and rejections by key. The appendix of people shows which roles one person holds.";
    Sr262 "Materiality" "Effort follows the materiality of a model."
        [SlicesClassified ManifestRegistered]
        "Stakes by slice, as they were registered before data were seen.";
    Sr262 "Inventory" "An inventory of models in use is kept."
        [JudgeRegistered CalibratorFitted DeploymentActivated]
        "The part about the inventory lists judges and calibrators."
        but "models of the firm other than judges and calibrators";

    // Regulation (EU) 2016/679.
    Gdpr "Art. 5(1)(c), (e)" "Data are minimised, and kept no longer than needed."
        [RetentionSet SubjectErased DataIngested]
        "How long classes are kept, what was erased. Texts are taken in encrypted, under a key for each subject.";
    Gdpr "Art. 5(2)" "Accountability: the principles are kept, and that can be shown."
        [LedgerCreated DataRead RetentionSet SubjectErased]
        "Each read, retention and erasure is an entry with its signer and purpose.";
    Gdpr "Art. 17" "Erasure on request, unless an exception applies."
        [SubjectErased]
        "Each erasure with its basis; clover report erasure gives all that is on record of one."
        but "whether an exception applies: that is for people to judge";
    Gdpr "Art. 25" "Data protection by design and by default."
        [DataIngested LabelSealed DataRead]
        "Private texts and sealed labels are encrypted when they come in, and each opening is an entry.";
    Gdpr "Art. 30" "Records of processing activities."
        []
        "the register of processing activities is outside of a ledger";
    Gdpr "Art. 32" "Security of processing."
        [KeyAdded KeyRetired KeyCompromised LabelSealed]
        "Keys and their end, and what is sealed."
        but "security of machines";
    Gdpr "Art. 35" "Data protection impact assessment."
        []
        "an impact assessment is a document of people, and none is taken in";
}

/// The requirements of one report.
pub fn of(report: ReportKind) -> impl Iterator<Item = &'static Requirement> {
    REQUIREMENTS.iter().filter(move |of| of.report == report)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that a report of evidence never says.
    const BANNED: [&str; 4] = ["compliant", "compliance", "certified", "certif"];

    #[test]
    fn requirements_claim_nothing() {
        for of in REQUIREMENTS {
            for text in [of.code, of.asks, of.says, of.lacks] {
                let text = text.to_lowercase();
                let said = BANNED.iter().find(|word| text.contains(*word));
                assert_eq!(said, None, "{}: {text}", of.code);
            }
        }
    }

    #[test]
    fn every_requirement_stands_once_and_says_something() {
        let mut codes: Vec<_> = REQUIREMENTS
            .iter()
            .map(|of| (of.report.as_str(), of.code))
            .collect();
        codes.sort_unstable();
        assert!(codes.windows(2).all(|two| two[0] != two[1]));
        assert!(
            REQUIREMENTS
                .iter()
                .all(|of| !of.says.is_empty() && !of.asks.is_empty())
        );
        for report in [
            ReportKind::Tevv,
            ReportKind::AnnexIv,
            ReportKind::Part11,
            ReportKind::Soc2,
            ReportKind::Iso42001,
        ] {
            assert!(of(report).count() >= 10, "{}", report.as_str());
        }
    }
}
