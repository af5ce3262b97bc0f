"""Risks and endings as words for a column. Standard library only, because light subcommands import it."""

from collections.abc import Sequence

REMARKS = frozenset({"silent-description"})
"""Ids of risks that are about the words of the agent, and no danger of the command."""
UNREAD = "unread-code"
"""Stands for the id of a risk where code that nobody has read would run."""
_ORDER = (
    # Who reads a text that deceives knows nothing of the rest.
    ("past-hook", "control-characters", "deceptive-characters", "look-alikes", "hidden-tail", "soothing-words"),
    ("sends-data", "secret-in-arguments", "reads-secrets", "keystroke-injection"),
    ("destructive", "empty-variable", "ends-processes", "privilege", "sensitive-write", "unseen-script"),
    ("outside-workspace", "writes-outside", "writes-secrets", "runs-later", "steers-agents", "persistence"),
    (UNREAD,),
)
"""The most serious first: deceit, what leaves this machine, what cannot be undone, what is outside, unread code."""
_PLACES = {id_: place for place, ids in enumerate(_ORDER) for id_ in ids}


def weight(id_: str, *, grave: bool) -> tuple[bool, bool, int]:
    """Return a key that sorts risks: severe ones first, remarks last, and of each what matters most."""
    return not grave, id_ in REMARKS, _PLACES.get(id_, len(_ORDER))


def risk_sign(id_: str, *, grave: bool) -> str:
    """Return two triangles for a grave risk, one for any other, and a dot for a remark, visible without colours."""
    if id_ in REMARKS:
        return "·"
    return "▲▲" if grave else "▲"


def gravest_risk(risks: Sequence[tuple[str, bool]]) -> str:
    """Return the gravest of some risks, each an id and whether it is grave, and the number of the others."""
    if not risks:
        return ""
    id_, grave = min(risks, key=lambda risk: weight(risk[0], grave=risk[1]))
    more = f" +{len(risks) - 1}" if len(risks) > 1 else ""
    return f"{risk_sign(id_, grave=grave)} {id_.replace('-', ' ')}{more}"


def ending_word(kind: str, code: int | None, signal: str | None, carried_out: str) -> str:
    """Return an ending in one or two words. `carried_out`: the kind of a call that its agent carries out itself."""
    match kind:
        case "exited" if carried_out == "function":
            return "failed" if code else "returned"
        case "exited":
            return f"exit {code}"
        case "signalled":
            return signal or "signal"
        case "failed_to_start":
            return "not started"
        case "handed_over":
            # Its agent's tool reports nothing, so the approval is the last that is known for certain.
            return "approved" if carried_out else "not seen"
        case _:
            return kind.replace("_", " ")
