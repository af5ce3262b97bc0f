"""The story: every kind of move is in it, it fits the tools, and what it says is printed is what is printed."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from whisper_tui.demo.scripted_agents import Workspace, temporary_workspace
from whisper_tui.demo.story import (
    BUILD,
    CRAWL_LINES,
    END,
    MAKEFILE,
    SCENES,
    TEST_FAILS,
    TEST_PASSES,
    WANTED,
    Move,
    Printed,
    crawl_line,
)

BY_ID = {scene.id: scene for scene in SCENES}


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    with temporary_workspace(step_s=0) as workspace:
        yield workspace


def run(workspace: Workspace, *words: str) -> tuple[int, Printed]:
    """Run a script of the demo's project without whisper_tui."""
    ran = subprocess.run(
        words, cwd=workspace.root, env=workspace.environment, capture_output=True, timeout=60, check=False
    )
    return ran.returncode, Printed(out=ran.stdout.decode(), err=ran.stderr.decode())


def test_every_kind_of_move_is_in_it() -> None:
    assert {type(scene.move) for scene in SCENES} == set(Move.__args__)


def test_a_scene_follows_only_what_was_before_it() -> None:
    for number, scene in enumerate(SCENES):
        assert scene.follows is None or scene.follows in {earlier.id for earlier in SCENES[:number]}
    assert len(BY_ID) == len(SCENES)


def test_the_build_prints_what_the_story_says(workspace: Workspace) -> None:
    assert run(workspace, "./build.sh") == (0, BUILD)


def test_the_tests_fail_until_the_tax_rate_is_right(workspace: Workspace) -> None:
    assert run(workspace, "./test.sh") == (1, TEST_FAILS)
    run(workspace, "bash", "-c", BY_ID["fix"].arguments["command"])
    assert run(workspace, "./test.sh") == (0, TEST_PASSES)


def test_the_release_prints_what_the_story_says(workspace: Workspace) -> None:
    assert run(workspace, "./release.sh", "staging") == (0, BY_ID["release"].printed)


def test_the_noisy_command_prints_what_the_story_says(workspace: Workspace) -> None:
    code, printed = run(workspace, "./crawl.sh")
    lines = printed.out.splitlines(keepends=True)
    assert (code, len(lines), len(printed.out)) == (0, CRAWL_LINES, BY_ID["crawl"].out_bytes)
    assert lines[0] == crawl_line(1) and lines[-1] == crawl_line(CRAWL_LINES)
    assert printed.out.startswith(BY_ID["crawl"].printed.out)


def test_the_edit_fits_the_file_and_its_last_line_would_release(workspace: Workspace) -> None:
    makefile = workspace.root / "Makefile"
    assert makefile.read_text() == MAKEFILE
    edit = BY_ID["makefile"].arguments
    asked = MAKEFILE.replace(edit["old_string"], edit["new_string"])
    assert MAKEFILE.count(edit["old_string"]) == 1 and asked != MAKEFILE
    assert asked.removesuffix("\t./release.sh production\n") == WANTED == BY_ID["makefile"].move.content  # type: ignore[union-attr]
    assert "release" not in WANTED


def test_the_risk_is_real_and_the_other_wording_deletes_the_cache_alone(workspace: Workspace) -> None:
    drafts = {"drafts", "drafts/ferns.md", "drafts/spring-letter.md"}
    cache = {"cache", "cache/plants.json"}
    before = _files(workspace.root)
    assert before >= drafts | cache
    assert run(workspace, "bash", "-c", BY_ID["clean-by-name"].arguments["command"]) == (0, Printed())
    assert _files(workspace.root) == before - cache
    assert run(workspace, "bash", "-c", BY_ID["clean"].arguments["command"]) == (0, Printed())
    assert _files(workspace.root) == before - cache - drafts


def test_each_advice_fits_into_one_line_of_a_small_terminal() -> None:
    advice = [END, *(line for s in SCENES for line in (s.caption, s.running, s.after, s.otherwise))]
    assert [line for line in advice if len(line) > 78] == []


def test_the_script_that_asks_questions_says_so_without_a_terminal(workspace: Workspace) -> None:
    code, printed = run(workspace, "./tag.sh")
    assert code == 2
    assert "needs a terminal" in printed.err


def test_the_workspace_is_private_and_gone_afterwards() -> None:
    with temporary_workspace(step_s=0) as workspace:
        assert workspace.place.stat().st_mode & 0o077 == 0
        assert set(workspace.environment) == {"PATH", "HOME", "LC_ALL", "TERM", "DEMO_PAUSE"}
        assert Path(workspace.environment["HOME"]).is_relative_to(workspace.place)
    assert not workspace.place.exists()


def test_the_workspace_is_gone_even_if_the_demo_breaks() -> None:
    with pytest.raises(RuntimeError), temporary_workspace(step_s=0) as workspace:
        raise RuntimeError
    assert not workspace.place.exists()


def _files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}
