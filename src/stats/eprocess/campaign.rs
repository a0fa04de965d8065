//! The stop rule of an optimisation loop: is any generation's candidate better than the baseline?
//!
//! A generation picks a candidate among many on some data. Testing it on the same data finds improvements where there are
//! none (the peer's rule stops in 57 % of null loops). Here selection and test are apart: a generation's gate takes only
//! units that no selection has seen, in beacon order. Then each gate's wealth is an e-value given all that came before,
//! candidates and their choice included, so that
//!
//! * the product over generations is an e-process of "no candidate of this loop is better"; at 1/alpha the loop has found
//!   an improvement, with probability at most alpha if there is none;
//! * e-LOND over generations says which candidates may be promoted: false discovery rate at most alpha, and at most alpha
//!   for any promotion in a null loop.

use crate::stats::eprocess::bettor;
use crate::stats::eprocess::design::Carried;
use crate::stats::eprocess::design::Design;
use crate::stats::eprocess::design::Population;
use crate::stats::eprocess::design::Terms;
use crate::stats::eprocess::design::Threshold;
use crate::stats::eprocess::family;
use crate::stats::eprocess::gate::Gate;
use crate::stats::eprocess::verdict::Outcome;
use crate::stats::sample::SampleError;

/// A loop between its generations.
#[derive(Clone, Debug, PartialEq)]
pub struct Campaign {
    alpha: u32,
    generations: u32,
    promotions: u32,
    observations: u64,
    fractions: usize,
    ln_wealth: f64,
    ln_peak: f64,
}

impl Campaign {
    /// A loop before its first generation, at a level in millionths.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a level outside (0, 1).
    pub fn new(alpha: u32) -> Result<Self, SampleError> {
        family::elond_stop(alpha, 1, 0)?;
        Ok(Self {
            alpha,
            generations: 0,
            promotions: 0,
            observations: 0,
            fractions: bettor::FRACTIONS,
            ln_wealth: 0.0,
            ln_peak: 0.0,
        })
    }

    /// The terms of the next generation's gate: at the loop's level, stopping at e-LOND's e-value for its place.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] after more generations than can be counted.
    pub fn terms(&self, terms: Terms) -> Result<Terms, SampleError> {
        let index = self.generations.checked_add(1);
        let index = index.ok_or(SampleError::Parameter {
            name: "generations",
            expected: "fewer than 2^32",
        })?;
        let stop = family::elond_stop(self.alpha, index, self.promotions)?;
        let mut terms = terms.at_level(self.alpha);
        terms.stop = stop;
        Ok(terms)
    }

    /// Closes a generation with its gate, wherever it stands: the product takes its wealth.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] for a gate on a finite set, one that carries wealth, or one of other terms than
    /// [`Campaign::terms`] gives.
    pub fn close(&mut self, gate: &Gate) -> Result<(), SampleError> {
        let terms = gate.design().terms();
        let same = self.terms(terms.clone())? == *terms
            && terms.carried == Carried::default()
            && terms.population == Population::Superpopulation;
        let claim = gate.look().claim.filter(|_| same);
        let claim = claim.ok_or(SampleError::Parameter {
            name: "gate",
            expected: "one of this generation's terms, with a claim, on fresh units of a superpopulation",
        })?;
        self.generations += 1;
        self.promotions += u32::from(gate.verdict().outcome() == Outcome::Ship);
        self.observations += gate.n();
        self.fractions = self.fractions.max(gate.design().fractions());
        self.ln_wealth += claim.ln_wealth;
        self.ln_peak = self.ln_peak.max(self.ln_wealth);
        Ok(())
    }

    /// Generations that were closed.
    pub fn generations(&self) -> u32 {
        self.generations
    }

    /// Candidates that were promoted.
    pub fn promotions(&self) -> u32 {
        self.promotions
    }

    /// Log wealth against "no candidate of this loop is better".
    pub fn ln_wealth(&self) -> f64 {
        self.ln_wealth
    }

    /// Always-valid p-value of the same.
    pub fn p_value(&self) -> f64 {
        crate::num::math::exp(-self.ln_peak).min(1.0)
    }

    /// Whether the loop may stop because it has found an improvement.
    pub fn has_improved(&self) -> bool {
        let bar = Threshold::of_level(self.alpha).ln();
        bettor::is_past(self.observations, self.fractions, self.ln_wealth, bar)
    }

    /// The design of the next generation's gate.
    ///
    /// # Errors
    /// [`SampleError::Parameter`] as [`Campaign::terms`], and where the terms do not hold together.
    pub fn design(&self, terms: Terms) -> Result<Design, SampleError> {
        Design::new(self.terms(terms)?).map_err(|_| SampleError::Parameter {
            name: "terms",
            expected: "terms of a design",
        })
    }
}
