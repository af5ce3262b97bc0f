"""Calls that were previewed, with changes and contents that the scene states."""

from tests.tui.edit_scenes import EDITED, GARDEN, SETTINGS, garden
from tests.tui.scenes import ME, Scenario
from whisper_tui.model.call import CallRequest, CommandSpec, EditAction, EditedFile, FileVersions, Shell
from whisper_tui.model.decision import Approve
from whisper_tui.model.ending import Exited, FailedToStart, Signalled
from whisper_tui.model.event import Decided, PreviewStarted, UndoEnded, UndoStarted
from whisper_tui.model.preview import (
    BlockedAccess,
    ChangeAction,
    ChangeCounts,
    PreviewChange,
    PreviewPage,
    PreviewReport,
)
from whisper_tui.model.run import OutputSizes
from whisper_tui.model.verdict import Meaning, Resolved

COMMAND = "./tidy.sh --all"
SCRIPT = """#!/bin/sh
sed -i 's/"pages": 12/"pages": 20/' settings.py
mkdir -p pages
printf '# Moss\\n\\nGrows in shade.\\n' > pages/moss.md
rm old.txt
chmod +x tidy.sh
"""
FILES = {"settings.py": SETTINGS, "old.txt": "one\ntwo\n", "tidy.sh": SCRIPT}
PRINTED = b"settings.py: reformatted\nold.txt: nobody uses it\n2 files left alone\n"
REPORT = PreviewReport(
    ending=Exited(code=0),
    output=OutputSizes(out=len(PRINTED)),
    seconds=0.4,
    digest="d1",
    counts=ChangeCounts(created=3, changed=1, deleted=1, attributes=1, outside=1),
)
CONTAINER = "the system gives it no namespaces: Operation not permitted (a filter is in force, as in containers)"
NOT_INSTALLED = "it is not installed"
BLOCKED = BlockedAccess(what="network", target="stats.example.net:443", times=3)


def change(
    number: int, action: ChangeAction, path: str, before: int | None = None, after: int | None = None, **more: object
) -> PreviewChange:
    kind = "directory" if path.endswith("/") else "file"
    full = path.rstrip("/") if path.startswith("/") else str(GARDEN / path.rstrip("/"))
    fields = {"number": number, "action": action, "path": full, "kind": kind, "outside": path.startswith("/")}
    return PreviewChange.model_validate(fields | {"size_before": before, "size_after": after} | more)


CHANGES = (
    change(0, "changes", "settings.py", len(SETTINGS), len(EDITED)),
    change(1, "creates", "pages/", below=1),
    change(2, "creates", "pages/moss.md", after=23),
    change(3, "deletes", "old.txt", before=8),
    change(4, "attributes", "tidy.sh", mode_before=0o644, mode_after=0o755, flags=("it is executable",)),
    change(5, "creates", "/home/me/.cache/tidy", after=12),
)


def versions(action: EditAction, path: str, old: str | None, new: str | None) -> FileVersions:
    size = None if old is None else len(old)
    file = EditedFile(action=action, path=path, real=path, size=size, inside=path.removeprefix(f"{GARDEN}/"))
    return FileVersions(file=file, old=old, new=new)


CONTENTS = {
    0: versions("changes", f"{GARDEN}/settings.py", SETTINGS, EDITED),
    2: versions("creates", f"{GARDEN}/pages/moss.md", None, "# Moss\n\nGrows in shade.\n"),
    3: versions("deletes", f"{GARDEN}/old.txt", "one\ntwo\n", None),
    5: versions("creates", "/home/me/.cache/tidy", None, "last run: 7\n"),
}


def tidying(
    scenario: Scenario | None = None, text: str = COMMAND, parts: tuple[Meaning, ...] = ()
) -> tuple[Scenario, str]:
    """An agent asks for a command; nothing is previewed yet. `parts`: what it expands to."""
    if scenario is None:
        scenario, real = garden(FILES)
        scenario.supervisor.directories[str(GARDEN)] = str(real / "garden")
    session = scenario.supervisor.open("garden agent", str(GARDEN), "claude-code", "2.1.329")
    spec = CommandSpec(command=Shell(text=text), cwd=str(GARDEN))
    request = CallRequest(
        session_id=session.id, tool="run_shell_command", arguments={"command": text}, spec=spec,
        description="Tidy up the garden",
    )  # fmt: skip
    resolved = Resolved(program=str(GARDEN / "tidy.sh"), cwd=str(GARDEN), commands=parts)
    return scenario, scenario.supervisor.ask(request, resolved=resolved)


def begin_preview(scenario: Scenario, call_id: str) -> None:
    attempt = scenario.supervisor.known(call_id).attempts + 1
    scenario.supervisor.happen(PreviewStarted(at=scenario.clock(), call_id=call_id, attempt=attempt, by=ME))


def end_preview(
    scenario: Scenario,
    call_id: str,
    report: PreviewReport = REPORT,
    changes: tuple[PreviewChange, ...] = CHANGES,
    conflicts: tuple[str, ...] = (),
) -> None:
    """The preview that runs has found these changes."""
    for number, found in CONTENTS.items():
        scenario.supervisor.previewed_contents[call_id, number] = found
    page = PreviewPage(changes=changes, total=len(changes), counts=report.counts, conflicts=conflicts)
    scenario.supervisor.end_preview(call_id, report, page)


def apply(scenario: Scenario, call_id: str) -> None:
    """The changes of its preview become real."""
    decision = Approve(preview=REPORT.digest)
    scenario.supervisor.happen(Decided(at=scenario.clock(), call_id=call_id, decision=decision, by=ME))
    scenario.supervisor.apply_preview(call_id)


def previewed() -> Scenario:
    """A command waits, and its preview is over."""
    scenario, call_id = tidying()
    begin_preview(scenario, call_id)
    scenario.supervisor.write(call_id, PRINTED)
    scenario.clock.advance(0.4)
    end_preview(scenario, call_id)
    return scenario


def previewing() -> Scenario:
    """The preview of a command runs."""
    scenario, call_id = tidying()
    begin_preview(scenario, call_id)
    scenario.supervisor.write(call_id, PRINTED[:26])
    scenario.clock.advance(3)
    return scenario


def cannot_be_applied() -> Scenario:
    """The preview tried to reach another machine, left a process behind, and files changed since it ran."""
    scenario, call_id = tidying()
    begin_preview(scenario, call_id)
    report = REPORT.model_copy(
        update={"ending": Exited(code=7), "blocked": (BLOCKED,), "left": ("./watch.sh garden",), "stopped": "network"}
    )
    end_preview(scenario, call_id, report, conflicts=(f"{GARDEN}/settings.py",))
    return scenario


def _ended_with(report: PreviewReport, changes: tuple[PreviewChange, ...] = CHANGES) -> Scenario:
    """A command of several parts waits, and its preview has this outcome."""
    parts = (
        Meaning(words=("./tidy.sh", "--all"), program=str(GARDEN / "tidy.sh")),
        Meaning(words=("make", "-s", "pages"), program="/usr/bin/make"),
    )
    scenario, call_id = tidying(text=f"{COMMAND} && make -s pages", parts=parts)
    begin_preview(scenario, call_id)
    scenario.supervisor.write(call_id, PRINTED)
    end_preview(scenario, call_id, report, changes)
    return scenario


def at_its_time_limit() -> Scenario:
    """The preview did not end by itself."""
    counts = ChangeCounts(created=2, changed=1, deleted=1)
    update = {"ending": Signalled(number=9, by_us=False), "seconds": 300.4, "stopped": "time", "counts": counts}
    return _ended_with(REPORT.model_copy(update=update), CHANGES[:4])


def by_bubblewrap() -> Scenario:
    """Only bubblewrap gets namespaces, and the command tried to write to a device."""
    blocked = (
        BlockedAccess(what="device", target="/dev/ttyUSB0"),
        BlockedAccess(what="network", target="192.0.2.53:53", times=2),
    )
    update = {"way": "bubblewrap", "instead": (("overlay", CONTAINER),), "blocked": blocked}
    problem = "a real run may write to /dev/ttyUSB0"
    return _ended_with(REPORT.model_copy(update={**update, "problem": problem}))


def in_a_copy() -> Scenario:
    """The command ran in a copy of its workspace, outside of which it tried to write."""
    update = {
        "way": "copy",
        "instead": (("overlay", CONTAINER), ("bubblewrap", NOT_INSTALLED)),
        "blocked": (BlockedAccess(what="write", target="/home/me/.cache/tidy"),),
        "problem": "its copy of the workspace kept it from /home/me/.cache/tidy",
        "counts": REPORT.counts.model_copy(update={"created": 2, "outside": 0}),
    }
    return _ended_with(REPORT.model_copy(update=update), CHANGES[:5])


def read_only() -> Scenario:
    """The command could write nothing."""
    tried = ("settings.py", "pages", "old.txt")
    update = {
        "way": "read-only",
        "instead": (
            ("overlay", CONTAINER),
            ("bubblewrap", NOT_INSTALLED),
            ("copy", "the workspace has more than 2 GiB to copy"),
        ),
        "blocked": tuple(BlockedAccess(what="write", target=str(GARDEN / name)) for name in tried),
        "problem": "it ran without writing, so there is nothing to apply",
        "ending": Exited(code=1),
        "digest": "",
        "counts": ChangeCounts(),
    }
    return _ended_with(REPORT.model_copy(update=update), ())


def not_available() -> Scenario:
    """The system has no way to preview a command."""
    scenario, call_id = tidying()
    scenario.supervisor.previews = "not possible (bubblewrap: it is not installed)"
    begin_preview(scenario, call_id)
    failed = FailedToStart(problem="other", subject=COMMAND, message="Commands cannot be previewed here.")
    instead = (
        (
            "overlay",
            CONTAINER,
        ),
        ("bubblewrap", NOT_INSTALLED),
        ("copy", "there is no sandbox: the kernel has no Landlock"),
        ("read-only", "there is no sandbox: the kernel has no Landlock"),
    )
    problem = "commands cannot be previewed here"
    report = PreviewReport(ending=failed, problem=problem, instead=instead, is_possible=False)
    end_preview(scenario, call_id, report, ())
    return scenario


def undone() -> Scenario:
    """What a call changed was undone, made again, and in part undone once more."""
    scenario = applied()
    for direction, paths in (("undo", ()), ("redo", ()), ("undo", (CHANGES[3].path,))):
        scenario.clock.advance(40)
        scenario.supervisor.happen(
            UndoStarted(at=scenario.clock(), call_id="1", direction=direction, paths=paths, by=ME),
            UndoEnded(at=scenario.clock(), call_id="1"),
        )
    return scenario


def applied() -> Scenario:
    """A call whose preview was applied: it has ended, and can be undone."""
    scenario = previewed()
    apply(scenario, "1")
    return scenario
