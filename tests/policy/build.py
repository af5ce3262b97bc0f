"""Short constructors of questions for the policy."""

from tests.model.build import ROOT, a_spec
from whisper_tui.model.call import CommandSpec
from whisper_tui.model.verdict import Resolved
from whisper_tui.policy.view import Question

FOUND = Resolved(program="/usr/bin/git", cwd=ROOT)


def a_question(
    spec: CommandSpec | None = None,
    *,
    session_id: str = "s1",
    resolved: Resolved | None = None,
    session_root: str = ROOT,
) -> Question:
    """`git status` in the workspace, found where it should be, or another command."""
    spec = spec or a_spec()
    return Question(
        session_id=session_id,
        session_root=session_root,
        spec=spec,
        description="See what changed",
        resolved=resolved or FOUND.model_copy(update={"cwd": spec.cwd}),
    )
