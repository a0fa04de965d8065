"""What a ledger is held to: rules, each a pure function of the state before an entry and the entry."""
