"""The gate in a client's files: the program that a client takes for its shell, and the doctor's checks of it."""

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from whisper_tui.agents.client_files import InstallRequest, Opener, Own, backup_of, plain_of, read_file
from whisper_tui.agents.file_entries import Setting, value_at
from whisper_tui.agents.findings import Check, CheckState, DoctorContext, Findings, bad, good, note
from whisper_tui.agents.probe import prove_gate
from whisper_tui.model.errors import BadConfiguration

FIRST_LINES = "#!/bin/sh\n# Written by whisper-tui install "
DIRECTORY = "gates"
"""The directory of gates, in that of the supervisor's state."""

SHELLS = ("zsh", "bash")
"""The shells that clients accept. The name of a gate ends in that of its shell, because clients look for it there."""

USUAL_SHELL = "/bin/bash"

DEADLINE_S = 100
"""Seconds after which a command at the gate is denied. Clients end a command of their shell after 120 seconds."""


def is_gate(path: object) -> bool:
    """True for the path of a gate of any installation."""
    parts = PurePosixPath(path).parts if isinstance(path, str) else ()
    return len(parts) > 1 and parts[-2] == DIRECTORY and parts[-1].rpartition("-")[2] in SHELLS


def shell_behind(path: str) -> str:
    """Return the shell for which a gate stands, or nothing. A path that is no gate's is returned as it is."""
    if not is_gate(path):
        return path
    try:
        words = shlex.split((read_file(Path(path)) or "").rpartition("\nexec ")[2])
    except (BadConfiguration, OSError, ValueError):
        return ""
    return words[words.index("--shell") + 1] if "--shell" in words[:-1] else ""


class Enforced(NamedTuple):
    """A gate that wins whichever file names it, as long as the client loads our plugin."""

    option: str
    """The option of the client that leaves the plugin out."""
    left_out: Callable[[], str]
    """Returns how the plugin is left out at present, as a clause. Empty: it is not."""


@dataclass(frozen=True)
class ShellSetting:
    """The setting with which a client is given its shell."""

    client: str
    title: str
    place: tuple[str, ...]
    """Its place in a settings file."""
    variable: str = ""
    """The variable with the same meaning."""

    def plan(self, request: InstallRequest, path: Path, opener: Opener) -> tuple[list[tuple[Setting, bool]], list[Own]]:
        """Return the entry for a settings file, and the gates: one for the kind of the user's shell, or none."""
        if request.launch.state is None:
            return [(Setting(self.place, "", ours=is_gate), False)], []
        shell = self._shell(request, path, opener)
        kind = next(kind for kind in SHELLS if kind in PurePosixPath(shell).name)
        # A client that runs what was approved itself gives its shell no tickets.
        wanted = request.hook and not request.agent_runs
        gates = {each: self._gate(request, request.launch.state, each) for each in SHELLS}
        text = self._text(request, shell)
        files = [
            Own(gate, FIRST_LINES, text if wanted and each == kind else None, program=True)
            for each, gate in gates.items()
        ]
        return [(Setting(self.place, str(gates[kind]), ours=is_gate), wanted)], files

    def gate(self, request: InstallRequest, path: Path, opener: Opener) -> str:
        """Return the path of the gate that is installed. Empty: none is."""
        return next((str(gate.path) for gate in self.plan(request, path, opener)[1] if gate.text is not None), "")

    def _gate(self, request: InstallRequest, state: Path, kind: str) -> Path:
        # Each project has its own, so that one can be removed while another stays.
        project = "" if request.project is None else f"-{sha256(os.fsencode(request.project)).hexdigest()[:8]}"
        return state / DIRECTORY / f"{self.client}{project}-{kind}"

    def _text(self, request: InstallRequest, shell: str) -> str:
        # A script, because clients start a shell only by its path.
        words = request.launch.gate(self.client, shell=shell, deadline_s=DEADLINE_S)
        return (
            f"{FIRST_LINES}{self.client}: runs what was approved in whisper_tui, and asks about everything else.\n"
            f'exec {shlex.join(words)} "$@"\n'
        )

    def _shell(self, request: InstallRequest, path: Path, opener: Opener) -> str:
        """Return the shell that the client would start without a gate."""
        here = _value(path, opener, self.place)
        before = _value(backup_of(path), opener, self.place) if is_gate(here) else here
        named = (before, request.environ.get(self.variable, ""), request.environ.get("SHELL", ""))
        chosen = (shell_behind(each) for each in named if isinstance(each, str))
        known = (each for each in chosen if any(kind in PurePosixPath(each).name for kind in SHELLS))
        return next((each for each in known if each.startswith("/")), USUAL_SHELL)

    def check(
        self,
        found: Findings,
        context: DoctorContext,
        settings: Mapping[Path, Any],
        enforced: Enforced | None = None,
    ) -> None:
        """Add the checks of the gate. `settings`: the files' contents, in the order in which later ones win."""
        named = {path: value for path, plain in settings.items() if (value := value_at(plain, self.place)) is not None}
        again = f"Run whisper-tui install {self.client}"
        # A client that runs what was approved itself has no gate.
        rewritten = any("--agent-runs" not in hook.words for hook in found.hooks)
        gate = next((str(value) for value in reversed(named.values()) if is_gate(value)), "")
        if not gate:
            sentence = f"{self.title} runs what another hook or plugin puts in the place of an approved command"
            found.checks.extend([note("shell", sentence, again)] if rewritten else [])
            return
        path, value = next(reversed(named.items()))
        if not is_gate(value):
            found.checks.append(check := self._another_shell(path, enforced))
            if check.state is CheckState.BAD:
                return
        found.trials.append(lambda: self._proved(context, gate, again))

    def _another_shell(self, path: Path, enforced: Enforced | None) -> Check:
        """Return the check of a file that names another shell, and wins over that with the gate."""
        names, hint = f"{path} names another shell", f"Remove {'.'.join(self.place)} from it"
        if enforced is None:
            replaced = "what another hook or plugin puts in the place of an approved command runs"
            return bad("shell", f"{names}, so {replaced}, and whatever {self.title} runs without its hooks", hint)
        if left := enforced.left_out():
            return bad("shell", f"{names}, and {left}: its commands run without a question", hint)
        without = f"{self.title} with {enforced.option}, which runs commands there without a question"
        return note("shell", f"{names}. The gate wins, except over {without}", hint)

    def _proved(self, context: DoctorContext, gate: str, again: str) -> Check:
        problem = prove_gate(gate, context.environ, context.canary_s)
        if problem is None:
            return good("shell", f"The shell of {self.title} stopped a test command that was not approved")
        return bad("shell", f"The shell of {self.title}, {gate}, failed the test: {problem}", again)


def _value(path: Path, opener: Callable[[str], Any], place: tuple[str, ...]) -> Any:
    try:
        return value_at(plain_of(path, opener), place)
    except BadConfiguration:
        return None  # Whoever changes the file reports it.
