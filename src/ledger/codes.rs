//! The registry of codes: what a plan, a gate or an order was found to break, one line each. A code stands in brackets
//! behind what was found, so that a program can tell refusals of one rule apart. Source: `optimizers.md`, conflict
//! errors. The table of `schema/GATES.md` comes from here.

use std::fmt;

macro_rules! codes {
    ($($code:ident $name:literal: $meaning:literal;)*) => {
        /// What a plan, a gate or an order was found to break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $meaning] $code,)*
        }

        impl Code {
            /// Every code, in the order of their names.
            pub const ALL: &'static [Self] = &[$(Self::$code),*];

            /// As refusals and findings write it.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                }
            }

            /// What it says of what was found.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => $meaning,)*
                }
            }
        }
    };
}

codes! {
    AdaptiveReuse "E_ADAPTIVE_REUSE": "units that could be seen before the plan that tests on them was agreed to";
    AfterTerminal "E_AFTER_TERMINAL": "a step of a gate that has ended or was decided";
    Alpha "E_ALPHA": "an error rate that is not the plan's, or none between 0 and 1";
    ArmDigest "E_ARM_DIGEST": "another candidate or baseline than the plan names";
    Bettor "E_BETTOR": "another bettor, or one with terms that it cannot have";
    DataRoot "E_DATA_ROOT": "units or strata that are not those under the plan's root";
    Direction "E_DIRECTION": "a side or direction that the claim does not have";
    DuplicateUnit "E_DUP_UNIT": "a unit that stands twice";
    Exposure "E_EXPOSURE": "a unit that is not exposed yet, or exposed out of turn";
    FamilyBudget "E_FAMILY_BUDGET": "more than the family's error rate or its number of members allows";
    Horizon "E_HORIZON": "so few units that even the best of them could not decide";
    JudgeDigest "E_JUDGE_DIGEST": "another judge, or sources that the plan does not name";
    Margin "E_MARGIN": "a margin or an effect that the test cannot have";
    Number "E_N": "another number of units, looks or labels than the plan or the record has";
    Order "E_ORDER": "a unit, a step or a draw that is out of the order drawn";
    PastMaximum "E_PAST_MAXN": "a unit after the last that the plan allows";
    Scale "E_SCALE": "a value outside of the metric's scale";
    SignerRole "E_SIGNER_ROLE": "a signer who does not have the role that the plan names";
    StaleVersion "E_STALE_VERSION": "a version of the plan that is not the one in force";
    Unit "E_UNIT": "a claim about other units than the test can speak of";
    UnregisteredRule "E_UNREGISTERED_RULE": "something that the plan in force does not register";
}

impl Code {
    /// What was found, with the code behind it.
    pub fn of(self, found: impl fmt::Display) -> String {
        format!("{found} ({self})")
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use clover_ground::page;

    use super::Code;

    #[test]
    fn the_page_lists_every_code() {
        let row = |code: &Code| format!("| `{code}` | {} |\n", code.meaning());
        let rows = Code::ALL.iter().map(row).collect();
        page::hold("schema/GATES.md", &[("| code | what was found |", rows)]);
    }

    #[test]
    fn names_are_in_order() {
        assert!(Code::ALL.is_sorted_by(|one, next| one.as_str() < next.as_str()));
    }
}
