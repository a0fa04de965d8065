//! Families: what one is, who may join, and what a member may spend.

use crate::event::id::ManifestId;
use crate::event::payload::manifest::FamilyMethod;
use crate::event::payload::manifest::Manifest;
use crate::event::payload::manifest::Multiplicity;
use crate::event::payload::prereg::FamilyOpened;
use crate::ledger::Judged;
use crate::ledger::no;
use crate::projection::manifests::Family;
use crate::projection::manifests::Manifests;

const ONE: i64 = 1_000_000;
/// Most members of a family that is closed together: its procedures take steps in the cube of them.
pub const FAMILY_MAX: u64 = 1_000;

pub(super) fn opened(opened: &FamilyOpened) -> Judged {
    let alpha = opened.alpha_micro.value();
    if !(1..ONE).contains(&alpha) {
        return no(format!("alpha_micro 1 to {}", ONE - 1), alpha.to_string());
    }
    let most = opened.members_max.value();
    let listed = opened
        .members
        .as_ref()
        .map_or(0, |members| members.len() as u64);
    if most == 0 || listed > most {
        return no(
            format!("members_max of at least {}", listed.max(1)),
            most.to_string(),
        );
    }
    let alone = matches!(opened.method, FamilyMethod::Elond | FamilyMethod::Spend);
    if !alone && most > FAMILY_MAX {
        let expected =
            format!("members_max of at most {FAMILY_MAX} where members are closed together");
        return no(expected, most.to_string());
    }
    let elond = opened.method == FamilyMethod::Elond;
    let Some(gamma) = &opened.gamma_micro else {
        return elond.then(|| ("gamma_micro for elond".to_owned(), "none".to_owned()));
    };
    if !elond {
        return no("gamma_micro for elond only", "gamma_micro");
    }
    let legal = gamma.iter().all(|share| (1..=ONE).contains(&share.value()));
    let sum = gamma
        .iter()
        .map(|share| share.value())
        .fold(0, i64::saturating_add);
    if legal && !gamma.is_empty() && sum <= ONE {
        return None;
    }
    no(
        format!("shares from 1, together at most {ONE}"),
        format!("{} shares, together {sum}", gamma.len()),
    )
}

fn family_of<'a>(manifests: &'a Manifests, of: &Multiplicity) -> Result<&'a Family, Judged> {
    let name = &of.family;
    let Some(family) = manifests.families.get(name) else {
        return Err(no("an open family", format!("{name}, never opened")));
    };
    if family.method != of.method || family.alpha != of.family_alpha_micro.value() {
        let found = format!("{:?} at {}", of.method, of.family_alpha_micro.value());
        let expected = format!(
            "{:?} at {}, as {name} was opened",
            family.method, family.alpha
        );
        return Err(no(expected, format!("{found} (E_FAMILY_BUDGET)")));
    }
    Ok(family)
}

pub(super) fn join(manifests: &Manifests, manifest: &Manifest) -> Judged {
    let of = manifest.multiplicity.as_ref()?;
    let family = match family_of(manifests, of) {
        Ok(family) => family,
        Err(judged) => return judged,
    };
    if let Some(seq) = family.closed_seq {
        let found = format!("{}, closed at seq {seq} (E_FAMILY_BUDGET)", of.family);
        return no("a family that is not closed", found);
    }
    let id = &manifest.manifest;
    if family
        .members
        .as_ref()
        .is_some_and(|members| !members.contains(id))
    {
        return no(format!("a listed member of {}", of.family), id.to_string());
    }
    let others = family
        .joined
        .iter()
        .filter(|(member, _)| member != id)
        .count();
    if others as u64 >= family.members_max {
        let expected = format!("at most {} members of {}", family.members_max, of.family);
        return no(expected, format!("{id} more (E_FAMILY_BUDGET)"));
    }
    alpha(family, of, id, manifest.alpha().unwrap_or(0))
}

impl Family {
    /// The largest alpha that a member may have, in millionths; without a name, one that joins now. 0 or less where nothing is
    /// left.
    pub fn alpha_of(&self, id: Option<&ManifestId>) -> i64 {
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

/// What a member may spend.
fn alpha(family: &Family, of: &Multiplicity, id: &ManifestId, alpha: i64) -> Judged {
    let most = family.alpha_of(Some(id));
    if alpha <= most {
        return None;
    }
    no(
        format!("at most alpha_micro {} left in {}", most.max(0), of.family),
        format!("{alpha} (E_FAMILY_BUDGET)"),
    )
}

pub(super) fn amended(manifests: &Manifests, manifest: &Manifest) -> Judged {
    let record = manifests.by_id.get(&manifest.manifest)?;
    let old = record.versions.first()?.manifest.multiplicity.as_ref();
    let new = manifest.multiplicity.as_ref();
    if old.map(|of| &of.family) != new.map(|of| &of.family) {
        let name =
            |of: Option<&Multiplicity>| of.map_or("none".to_owned(), |of| of.family.to_string());
        let expected = format!("family {}: membership is fixed at registration", name(old));
        return no(expected, format!("{} (E_FAMILY_BUDGET)", name(new)));
    }
    let of = new?;
    match family_of(manifests, of) {
        Ok(family) => alpha(
            family,
            of,
            &manifest.manifest,
            manifest.alpha().unwrap_or(0),
        ),
        Err(judged) => judged,
    }
}
