//! The registered vocabulary: which folded words mean what. Lists are alphabetical, one space between words.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// A topic with its tag, as rubrics name it in abstention triggers.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// The tag.
    pub tag: &'static str,
    /// Whether an answer on it needs sources.
    pub needs_evidence: bool,
    /// Words that raise it: one in a prompt, or two in a response.
    pub words: &'static str,
    /// Words for circumstances that decide the answer, when somebody asks for themselves; none if nothing does.
    pub decisive: &'static str,
}

impl Topic {
    /// Whether circumstances decide the answer.
    pub(super) fn is_decided(&self) -> bool {
        !self.decisive.is_empty()
    }
}

/// Every topic, by tag.
pub const TOPICS: [Topic; 6] = [
    Topic {
        tag: "finance",
        needs_evidence: true,
        words: "bond bonds credit debt dividend equity fund funds inflation interest invest investment \
         loan mortgage pension portfolio savings shares stock stocks yield",
        decisive: "age amount currency horizon income salary tax",
    },
    Topic {
        tag: "legal advice",
        needs_evidence: true,
        words: "attorney clause contract court custody defendant eviction judge lawsuit lawyer lease \
         legal liability litigation plaintiff statute sue tenant tort visa",
        decisive: "agreement country jurisdiction province signed state written",
    },
    Topic {
        tag: "medical dosing",
        needs_evidence: true,
        words: "dosage dose doses dosing mcg mg milligrams overdose tablet tablets",
        decisive: "age allergic allergies kg kidney liver pregnant weigh weight",
    },
    Topic {
        tag: "medicine",
        needs_evidence: true,
        words: "antibiotic blood cancer clinical diagnosis disease doctor drug infection insulin \
         medication medicine pain patient symptom symptoms therapy treatment vaccine virus",
        decisive: "age allergic allergies diagnosed history pregnant symptoms weight",
    },
    Topic {
        tag: "science",
        needs_evidence: false,
        words: "atom biology carbon cell chemistry climate energy enzyme evolution experiment genome \
         hypothesis molecule particle physics planet protein quantum species",
        decisive: "",
    },
    Topic {
        tag: "technology",
        needs_evidence: false,
        words: "algorithm api browser code compiler computer database encryption function internet \
         network password programming python server software sql variable",
        decisive: "",
    },
];

/// Tags of every topic: what abstention triggers may name without new raw answers.
pub fn tags() -> BTreeSet<String> {
    TOPICS.iter().map(|topic| topic.tag.to_owned()).collect()
}

const CERTAIN: &str = "absolutely always certain certainly certainty clearly definitely exactly guarantee guaranteed \
     impossible indisputable indisputably invariably never obviously prove proven proves \
     undeniable undeniably undoubtedly unquestionably";

const CLAIM: &str = "according data evidence figures percent published research researchers statistics studies \
     study survey trial trials";

/// Words of five letters and more that every text may hold.
const COMMON: &str = "about above after again against along among answer around because before being below between \
     could describe discuss during every explain first given great including might other others \
     please point points question really shall should since still tell their there these thing \
     things think those through under until using where whether which while whose within without \
     would write yours";

const CONTRAST: &str = "admittedly alternatively although conversely counterargument critics however nevertheless \
     nonetheless objection opponents sceptics skeptics though whereas";

const HEDGE: &str = "apparently appear appears approximately arguably believe could generally likely may maybe \
     might often perhaps possible possibly presumably probable probably roughly seem seems \
     sometimes suggest suggests tend tends think typically uncertain unclear unlikely usually";

const PERSONAL: &str = "i i'm i've me my our us we";

const POLITE: &str = "please thank thanks welcome";

const RISK: &str = "adverse caution complication complications contraindicated damage danger dangerous emergency \
     fatal fraud harm harmful hazard illegal injury liability loss losses overdose penalty risk \
     risks risky severe toxic toxicity unsafe vulnerability warning";

const STAKEHOLDERS: &str = "children citizens clinicians community consumers customers doctors employees employers \
     families investors landlords neighbours nurses owners parents patients pensioners public \
     regulators residents shareholders students suppliers taxpayers teachers tenants users voters \
     workers";

/// What a word means: flags, and its places in the lists of stakeholders and topics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    flags: u16,
    stakeholder: u64,
    topics: [u64; TOPICS.len()],
    decisive: u64,
}

impl Marks {
    pub(super) const CERTAIN: u16 = 1;
    pub(super) const CLAIM: u16 = 1 << 1;
    pub(super) const COMMON: u16 = 1 << 2;
    pub(super) const CONTRAST: u16 = 1 << 3;
    pub(super) const HEDGE: u16 = 1 << 4;
    pub(super) const PERSONAL: u16 = 1 << 5;
    pub(super) const POLITE: u16 = 1 << 6;
    pub(super) const RISK: u16 = 1 << 7;

    /// Whether it bears a flag.
    pub(super) fn has(self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Its bit among the stakeholders, or 0.
    pub(super) fn stakeholder(self) -> u64 {
        self.stakeholder
    }

    /// Its bits in the words of each topic.
    pub(super) fn topics(self) -> [u64; TOPICS.len()] {
        self.topics
    }

    /// Topics, as bits, whose decisive circumstances it tells.
    pub(super) fn decisive_for(self) -> u64 {
        self.decisive
    }
}

/// Every word of the vocabulary, sorted, and where each first byte begins among them.
struct Index {
    words: Vec<(&'static str, Marks)>,
    starts: [usize; 257],
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut all = std::collections::BTreeMap::<&str, Marks>::new();
    let flagged = [
        (CERTAIN, Marks::CERTAIN),
        (CLAIM, Marks::CLAIM),
        (COMMON, Marks::COMMON),
        (CONTRAST, Marks::CONTRAST),
        (HEDGE, Marks::HEDGE),
        (PERSONAL, Marks::PERSONAL),
        (POLITE, Marks::POLITE),
        (RISK, Marks::RISK),
    ];
    for (list, flag) in flagged {
        for word in list.split(' ') {
            all.entry(word).or_default().flags |= flag;
        }
    }
    for (at, word) in STAKEHOLDERS.split(' ').enumerate() {
        all.entry(word).or_default().stakeholder = 1 << at;
    }
    for (topic, of) in TOPICS.iter().enumerate() {
        for (at, word) in of.words.split(' ').enumerate() {
            all.entry(word).or_default().topics[topic] = 1 << at;
        }
        for word in of.decisive.split_terminator(' ') {
            all.entry(word).or_default().decisive |= 1 << topic;
        }
    }
    let words: Vec<_> = all.into_iter().collect();
    let starts = std::array::from_fn(|byte| {
        words.partition_point(|(word, _)| usize::from(word.as_bytes()[0]) < byte)
    });
    Index { words, starts }
});

/// What a folded word means.
pub(super) fn marks(folded: &str) -> Marks {
    let Some(first) = folded.bytes().next() else {
        return Marks::default();
    };
    let index = &*INDEX;
    let first = usize::from(first);
    let group = &index.words[index.starts[first]..index.starts[first + 1]];
    group
        .binary_search_by(|(word, _)| (*word).cmp(folded))
        .map_or(Marks::default(), |at| group[at].1)
}

#[cfg(test)]
mod tests {
    use clover_ground::digest::Digest;

    use super::*;

    fn lists() -> Vec<Vec<&'static str>> {
        let mut lists = vec![
            CERTAIN,
            CLAIM,
            COMMON,
            CONTRAST,
            HEDGE,
            PERSONAL,
            POLITE,
            RISK,
            STAKEHOLDERS,
        ];
        lists.extend(
            TOPICS
                .iter()
                .flat_map(|topic| [topic.words, topic.decisive]),
        );
        lists
            .into_iter()
            .map(|list| list.split_terminator(' ').collect())
            .collect()
    }

    #[test]
    fn lists_are_sorted_short_enough_and_folded() {
        for list in lists() {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "{list:?}");
            assert!(list.len() <= 64);
        }
        assert!(TOPICS.windows(2).all(|pair| pair[0].tag < pair[1].tag));
        assert!(marks("may").has(Marks::HEDGE) && !marks("mayor").has(Marks::HEDGE));
        assert!(marks("dose").topics()[2] != 0 && marks("weight").decisive_for() == 0b1100);
        assert_eq!(marks(""), Marks::default());
    }

    #[test]
    fn the_tables_belong_to_the_version() {
        let text: Vec<String> = lists().iter().map(|list| list.join(" ")).collect();
        let digest = Digest::sha256(text.join("\n").as_bytes());
        assert_eq!(super::super::VERSION, "clover-text/1");
        // Another vocabulary is another version: raise it, then pin its digest here.
        assert_eq!(
            digest.to_hex(),
            "4daf46dbd6a038a7e73b171784376bf90fafd109b4f7ea68f1eb5ac7e7da7d6c"
        );
    }
}
