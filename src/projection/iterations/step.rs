//! Steps of an iteration.

/// A step of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Scores that are missing, and a re-score of those that are there.
    Score,
    /// The baseline's calibrator, and the checks of labels.
    Fit,
    /// Residuals, their classification, and the pause if one is due.
    Audit,
    /// Residual cards.
    Cards,
    /// Patches, by whoever writes them.
    Propose,
    /// Gates on dev.
    Gate,
    /// What goes to confirm.
    Seal,
    /// The one look at confirm, and the gates on it.
    Confirm,
    /// Who is accepted.
    Accept,
    /// The end.
    Close,
}

impl Step {
    /// Every step in order.
    pub const ALL: [Self; 10] = [
        Self::Score,
        Self::Fit,
        Self::Audit,
        Self::Cards,
        Self::Propose,
        Self::Gate,
        Self::Seal,
        Self::Confirm,
        Self::Accept,
        Self::Close,
    ];

    /// The verb on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Fit => "fit",
            Self::Audit => "audit",
            Self::Cards => "cards",
            Self::Propose => "propose",
            Self::Gate => "gate",
            Self::Seal => "seal",
            Self::Confirm => "confirm",
            Self::Accept => "accept",
            Self::Close => "close",
        }
    }
}
