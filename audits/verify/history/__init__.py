"""What the log has said so far: the state before an entry, and how each entry changes it."""
