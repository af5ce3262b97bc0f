"""The reasons that were given lately: they are kept as long as the cockpit is open, and nowhere else."""

MOST = 6
"""Reasons that are kept at hand."""


class Reasons:
    """What a person told agents, the newest first, each once."""

    def __init__(self) -> None:
        self._given: tuple[str, ...] = ()

    @property
    def recent(self) -> tuple[str, ...]:
        """The newest first."""
        return self._given

    def give(self, reason: str) -> None:
        """Keep a reason at hand. Nothing is kept of an empty one."""
        if reason:
            self._given = (reason, *(other for other in self._given if other != reason))[:MOST]
