"""How commands can be previewed here: a process of its own tries each way with a command that does nothing."""

import asyncio
import errno
import json
import os
import re
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from whisper_tui.model.preview import EXACT_WAYS, PreviewSetting, PreviewSupport
from whisper_tui.supervisor.preview.preview_process import WAS_KILLED
from whisper_tui.supervisor.preview.preview_ways import WAYS
from whisper_tui.system.own_program import own_module

PROBE_PATIENCE_S = 20.0
"""Seconds after which the probe counts as failed: usually it takes a tenth of one."""


PROBE_AGAIN_S = 5.0
"""Seconds between two probes for somebody who only looks, after one that has failed for a passing reason."""
TOOK_TOO_LONG = "it took too long"
_PASSING = (
    *map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)),
    TOOK_TOO_LONG,
    WAS_KILLED,
)


def may_pass(found: PreviewSupport) -> bool:
    """True if a way may work later although it does not now: the disk was full, or somebody killed the process."""
    return any(passing in reason for reason in found.reasons for passing in _PASSING)


async def preview_support(state: str, home: str, wanted: PreviewSetting = "auto") -> PreviewSupport:
    """Return how commands can be previewed: one that does nothing is, in each way, with its changes below `state`."""
    if sys.platform != "linux":
        return PreviewSupport(problem="previews need Linux")
    if wanted == "none":
        return PreviewSupport(problem="the configuration says so: [supervisor] previews")
    ways = [wanted] if wanted != "auto" else list(WAYS)
    store = f"{state}/preview-probe-{os.getpid()}"
    words = [*own_module("whisper_tui.supervisor.preview.preview_ways"), store, home, *ways]
    pipe = asyncio.subprocess.PIPE
    try:
        probe = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
        try:
            told, failed = await asyncio.wait_for(probe.communicate(), PROBE_PATIENCE_S)
        finally:
            if probe.returncode is None:
                probe.kill()
                await probe.wait()  # Its pipes are closed with it, while there is still an event loop to do so.
        found = json.loads(told or b"{}")
        if "ways" in found:
            return PreviewSupport.model_validate(found)
        return PreviewSupport(problem=f"the probe failed: {_reason(failed)}")
    except (OSError, ValueError, TimeoutError) as error:
        return PreviewSupport(problem=f"the probe failed: {error or TOOK_TOO_LONG}")


def _reason(failed: bytes) -> str:
    """Return the reason at the end of a traceback, without the words of Python around it."""
    last = failed.decode(errors="replace").strip().rpartition("\n")[2]
    return re.sub(r"^[\w.]*(Error|Exception): (\[Errno \d+\] )?", "", last)[-200:] or "it said nothing"


class PreviewProbe:
    """Finds out once for each supervisor how commands can be previewed, when somebody asks: most never need it."""

    def __init__(self, probe: Callable[[], Coroutine[Any, Any, PreviewSupport]]) -> None:
        self._probe = probe
        self._probing: asyncio.Task[PreviewSupport] | None = None
        self._probed_at = 0.0
        self._known: PreviewSupport | None = None

    @property
    def support(self) -> PreviewSupport | None:
        """How commands can be previewed. None: that is being found out, from now on at the latest."""
        probing = self._begin(PROBE_AGAIN_S)
        if probing.done() and not probing.cancelled():
            self._known = probing.result()
        return self._known

    def view_problem(self) -> str:
        """Return why no command can run in a view of the files, as a clause. Empty: one can, as far as is known."""
        support = self.support
        if support is None or any(way in EXACT_WAYS for way in support.ways):
            return ""
        return "; ".join(support.reasons) or "neither namespaces and overlayfs nor bubblewrap are in use"

    async def found(self) -> PreviewSupport:
        """Return how commands can be previewed, once it has been found out."""
        return await asyncio.shield(self._begin())

    async def proven_problem(self) -> str:
        """Return why no command can run in a view of the files, once it has been found out."""
        await self.found()
        return self.view_problem()

    async def close(self) -> None:
        """Stop."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.gather(self._probing, return_exceptions=True)

    def _begin(self, rest_s: float = 0.0) -> "asyncio.Task[PreviewSupport]":
        """Begin to find out how commands can be previewed. One that has failed for a passing reason is repeated.

        `rest_s`: not before these seconds have passed.
        """
        # Once for each supervisor, and not before somebody asks: most never need it.
        loop, probing = asyncio.get_running_loop(), self._probing
        again = probing is not None and probing.done() and not probing.cancelled() and may_pass(probing.result())
        if probing is None or (again and loop.time() >= self._probed_at + rest_s):
            probing = self._probing = loop.create_task(self._probe())
            self._probed_at = loop.time()
        return probing
