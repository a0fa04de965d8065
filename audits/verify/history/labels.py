"""Sealed labels: which seal a reveal opens, and which confirm block it shows."""

from formats.fields import decode_base64
from events.commitments import label_commitment
from history.records import draw_of_row


def seals_of(state, e):
    """Seals of the row that an entry names."""
    return state.seals.get((e.experiment, e.data["design"], e.data["row"]), [])


def matching_seals(state, e):
    """Those of them that commit to the value that is revealed."""
    if state.origin is None:
        return []
    opened = label_commitment(e.ledger, e.data["design"], e.data["row"], decode_base64(e.data["salt"]),
                              e.data["value_micro"])
    return [seal for seal in seals_of(state, e) if seal.commitment == opened]


def shown_of(state, e):
    """(block, cluster) of a label that is shown in an open iteration whose test is sequential, else (None, None)."""
    draw = draw_of_row(e.data["row"])
    if draw is None or state.designs.get((e.experiment, e.data["design"])) != "confirm":
        return None, None
    blocks = [it.block for it in state.iterations.values()
              if it.experiment == e.experiment and it.closed is None and it.block and it.block.root]
    return (blocks[0], draw[1]) if blocks else (None, None)
