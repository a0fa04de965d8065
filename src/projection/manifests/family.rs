//! Families: what one is, who may join, and what a member may spend.

use clover_event::id::ManifestId;
use clover_event::payload::manifest::FamilyMethod;
use clover_event::payload::manifest::Manifest;
use clover_event::payload::manifest::Multiplicity;
use clover_event::payload::prereg::FamilyOpened;
use clover_ground::canon;
use clover_ledger::Code;
use clover_ledger::RuleAnswer;
use clover_ledger::State;
use clover_ledger::Unmet;
use clover_ledger::ensure;
use clover_ledger::rulebooks::Question;
use clover_ledger::unmet;

use crate::manifests::Family;
use crate::manifests::Manifests;

const ONE: i64 = 1_000_000;
/// Most members of a family that is closed together: its procedures take steps in the cube of them.
pub const FAMILY_MAX: u64 = 1_000;

/// Whether a family can be.
pub(super) fn check_opening(opened: &FamilyOpened) -> RuleAnswer {
    let alpha = opened.alpha_micro.value();
    if !(1..ONE).contains(&alpha) {
        return unmet(format!("alpha_micro 1 to {}", ONE - 1), alpha.to_string());
    }
    let most = opened.members_max.value();
    let listed = opened
        .members
        .as_ref()
        .map_or(0, |members| members.len() as u64);
    if most == 0 || listed > most {
        return unmet(
            format!("members_max of at least {}", listed.max(1)),
            most.to_string(),
        );
    }
    let alone = matches!(opened.method, FamilyMethod::Elond | FamilyMethod::Spend);
    if !alone && most > FAMILY_MAX {
        let expected =
            format!("members_max of at most {FAMILY_MAX} where members are closed together");
        return unmet(expected, most.to_string());
    }
    let elond = opened.method == FamilyMethod::Elond;
    let Some(gamma) = &opened.gamma_micro else {
        ensure!(!elond, "gamma_micro for elond", "none");
        return Ok(());
    };
    ensure!(elond, "gamma_micro for elond only", "gamma_micro");
    let legal = gamma.iter().all(|share| (1..=ONE).contains(&share.value()));
    let sum = gamma
        .iter()
        .map(|share| share.value())
        .fold(0, i64::saturating_add);
    if legal && !gamma.is_empty() && sum <= ONE {
        return Ok(());
    }
    unmet(
        format!("shares from 1, together at most {ONE}"),
        format!("{} shares, together {sum}", gamma.len()),
    )
}

fn family_of<'a>(manifests: &'a Manifests, of: &Multiplicity) -> Result<&'a Family, Unmet> {
    let name = &of.family;
    let family = manifests.families.get(name).ok_or_else(|| Unmet {
        expected: "an open family".to_owned(),
        found: format!("{name}, never opened"),
    })?;
    if family.method != of.method || family.alpha != of.family_alpha_micro.value() {
        let found = format!(
            "{} at {}",
            canon::word(&of.method),
            of.family_alpha_micro.value()
        );
        return Err(Unmet {
            expected: format!(
                "{} at {}, as {name} was opened",
                canon::word(&family.method),
                family.alpha
            ),
            found: Code::FamilyBudget.of(found),
        });
    }
    Ok(family)
}

/// Whether a manifest may join the family that it names. One without a family spends nothing of any: the rule `manifest`
/// refuses a gate without one.
pub(super) fn check_joining(state: &State, manifest: &Manifest) -> RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let Some(of) = &manifest.multiplicity else {
        return Ok(());
    };
    let family = family_of(manifests, of)?;
    if let Some(seq) = family.closed_seq {
        let found = Code::FamilyBudget.of(format_args!("{}, closed at seq {seq}", of.family));
        return unmet("a family that is not closed", found);
    }
    let id = &manifest.manifest;
    if family
        .members
        .as_ref()
        .is_some_and(|members| !members.contains(id))
    {
        return unmet(format!("a listed member of {}", of.family), id.to_string());
    }
    let others = family
        .joined
        .iter()
        .filter(|(member, _)| member != id)
        .count();
    if others as u64 >= family.members_max {
        let expected = format!("at most {} members of {}", family.members_max, of.family);
        return unmet(expected, Code::FamilyBudget.of(format_args!("{id} more")));
    }
    check_alpha(state, family, of, manifest)
}

impl Family {
    /// The largest alpha that a member may have, in millionths; without a name, one that joins now. 0 or less where nothing is
    /// left. From rulebook 20 on it is never above the family's own.
    pub fn alpha_of(&self, state: &State, id: Option<&ManifestId>) -> i64 {
        let most = self.share_of(id);
        if state.asks(Question::CappedAlpha) {
            most.min(self.alpha)
        } else {
            most
        }
    }

    /// What its method gives to a member, in millionths, whatever the family has.
    pub fn share_of(&self, id: Option<&ManifestId>) -> i64 {
        let is = |member: &ManifestId| Some(member) == id;
        match self.method {
            FamilyMethod::Spend => {
                let others = self.joined.iter().filter(|(member, _)| !is(member));
                let spent = others.map(|(_, alpha)| *alpha);
                self.alpha
                    .saturating_sub(spent.fold(0, i64::saturating_add))
            }
            FamilyMethod::Elond => {
                let place = self.joined.iter().position(|(member, _)| is(member));
                let share = self.gamma.get(place.unwrap_or(self.joined.len()));
                // Both are at most 10^12 millionths, so the product of a share below 1 and alpha fits.
                let part = self.alpha.saturating_mul(share.copied().unwrap_or(0)) / ONE;
                // e-LOND: times one more than the claims that held when it was registered. That stays, so a member
                // that is amended may keep what it had.
                let held = i64::try_from(self.rejected.len()).unwrap_or(i64::MAX);
                place.map_or_else(
                    || part.saturating_mul(held.saturating_add(1)),
                    |place| part.max(self.joined[place].1),
                )
            }
            FamilyMethod::ClosedEbh | FamilyMethod::ClosedMean | FamilyMethod::Ebh => self.alpha,
        }
    }
}

/// Whether a member spends no more than it may. What has no level spends nothing.
fn check_alpha(
    state: &State,
    family: &Family,
    of: &Multiplicity,
    manifest: &Manifest,
) -> RuleAnswer {
    let most = family.alpha_of(state, Some(&manifest.manifest));
    let alpha = manifest.alpha().unwrap_or(0);
    ensure!(
        alpha <= most,
        format!("at most alpha_micro {} left in {}", most.max(0), of.family),
        Code::FamilyBudget.of(alpha),
    );
    Ok(())
}

/// Whether a version leaves the family of its manifest, and spends no more than it may. The rule `amendment` refuses one of a
/// manifest that is not registered.
pub(super) fn check_amendment(state: &State, manifest: &Manifest) -> RuleAnswer {
    let manifests = state.fold::<Manifests>();
    let record = manifests.by_id.get(&manifest.manifest);
    let Some(first) = record.and_then(|record| record.versions.first()) else {
        return Ok(());
    };
    let old = first.manifest.multiplicity.as_ref();
    let new = manifest.multiplicity.as_ref();
    if old.map(|of| &of.family) != new.map(|of| &of.family) {
        let name =
            |of: Option<&Multiplicity>| of.map_or("none".to_owned(), |of| of.family.to_string());
        let expected = format!("family {}: membership is fixed at registration", name(old));
        return unmet(expected, Code::FamilyBudget.of(name(new)));
    }
    let Some(of) = new else {
        // It has joined none.
        return Ok(());
    };
    check_alpha(state, family_of(manifests, of)?, of, manifest)
}
