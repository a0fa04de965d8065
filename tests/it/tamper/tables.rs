//! Rows dropped, swapped, doubled and changed through SQL, with the triggers taken off and put back.
