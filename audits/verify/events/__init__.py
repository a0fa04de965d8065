"""What a ledger can say: kinds of events, their data, and one entry line."""
