//! Signed events as DSSE envelopes (payload type `application/vnd.clover.event+json`), one a line: what was signed, with the
//! signature as it stands in the log. `keyid` is SHA-256 of the raw public key.

use std::io::Write;

use clover_event::entry;

use super::Extract;
use crate::ExportError;
use crate::Progress;
use crate::Stop;

/// Writes them; answers with their number.
pub(super) fn write(
    extract: &Extract<'_>,
    out: &mut dyn Write,
    progress: Progress<'_>,
) -> Result<u64, ExportError> {
    let (size, mut count) = (extract.checkpoint.checkpoint().size, 0);
    let mut line = Vec::new();
    let result = extract.ledger.entries(0, size, |read| {
        let stored = &read.stored;
        if (stored.seq + 1).is_multiple_of(1024) {
            progress(stored.seq + 1, size);
        }
        if extract.experiment.is_none() || read.event.experiment() == extract.experiment {
            line.clear();
            entry::write_envelope(&mut line, &stored.body, &stored.author, &stored.signature);
            line.push(b'\n');
            out.write_all(&line).map_err(|error| Stop(error.into()))?;
            count += 1;
        }
        Ok(())
    });
    result.map_err(|Stop(error)| error)?;
    out.flush()?;
    Ok(count)
}
