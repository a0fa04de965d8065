//! The four-event reference ledger, made by an independent program: its bytes are beyond argument.
