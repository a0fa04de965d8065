"""One run over a ledger: the walk, the checkpoints, the verdict and the command line."""
