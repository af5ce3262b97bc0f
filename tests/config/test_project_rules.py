"""Rules that a project brings along tighten at once, and allow only what the user has read and trusts."""

import os
from pathlib import Path

import pytest

from whisper_tui.config.project_rules import LONGEST, PROJECT_RULES_FILE
from whisper_tui.config.rule_files import RuleFiles
from whisper_tui.model.errors import BadConfiguration, Refused
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.system.state_directory import Directories

TEXT = """
read_only = {looking}
[[deny]]
name = "no push"
prefix = ["git", "push"]
justification = "use the queue"
[[ask]]
name = "migrations"
prefix = ["make", "migrate"]
[[allow]]
name = "tests"
prefix = ["npm", "test"]
[[allow]]
name = "elsewhere"
prefix = ["npm", "lint"]
directory = "/"
"""


class Place:
    """A workspace, and the user's own files."""

    def __init__(self, root: Path) -> None:
        self.root = root / "work"
        (self.root / PROJECT_RULES_FILE).parent.mkdir(parents=True)
        self.file = self.root / PROJECT_RULES_FILE
        self.home = Directories(config=root / "config", state=root / "state", runtime=root / "run")
        self.files = RuleFiles(self.home, Rules())

    def write(self, looking: str = "true") -> bytes:
        self.file.write_text(TEXT.format(looking=looking))
        return self.file.read_bytes()

    def rules(self) -> Rules:
        return self.files.current(str(self.root))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_untrusted_rules_deny_and_ask_in_the_projects_name_and_allow_nothing(place: Place) -> None:
    place.write()
    rules = place.rules()
    assert [(rule.name, rule.justification) for rule in rules.deny] == [
        ("project: no push", "the project's rules say: use the queue")
    ]
    assert [rule.name for rule in rules.ask] == ["project: migrations"]
    assert rules.allow == () and rules.broken is None


def test_project_rules_apply_to_their_own_workspace_only(place: Place, tmp_path: Path) -> None:
    place.write()
    assert place.files.current(str(tmp_path)).deny == ()
    assert place.files.current("").deny == ()


def test_trusted_rules_allow_within_the_workspace(place: Place) -> None:
    place.files.trusted.trust(str(place.root), place.write())
    allowed = place.rules().allow
    assert [(rule.name, rule.directory) for rule in allowed] == [
        ("project: tests", str(place.root)),
        ("project: elsewhere", str(place.root)),
    ]
    assert (place.files.trusted.path.stat().st_mode & 0o777) == 0o600


def test_rules_of_a_project_permit_no_effects_even_if_trusted(place: Place) -> None:
    text = '[[ask]]\nname = "build"\nprefix = ["make"]\nallow_if_preview = { writes_within = ["**"] }\n'
    place.file.write_text(text)
    assert [rule.allow_if_preview for rule in place.rules().ask] == [None]
    place.files.trusted.trust(str(place.root), text.encode())
    assert [(rule.name, rule.allow_if_preview) for rule in place.rules().ask] == [("project: build", None)]


def test_a_changed_file_is_untrusted_until_it_is_trusted_again(place: Place) -> None:
    content = place.write()
    place.files.trusted.trust(str(place.root), content)
    assert place.rules().allow
    place.file.write_bytes(content + b"\n")
    assert place.rules().allow == ()
    place.file.write_bytes(content)
    assert len(place.rules().allow) == 2
    place.files.trusted.forget(str(place.root))
    assert place.rules().allow == ()
    with pytest.raises(Refused, match="not trusted"):
        place.files.trusted.forget(str(place.root))


def test_a_project_may_make_read_only_commands_ask_but_not_allow_them(place: Place) -> None:
    place.write("false")
    assert place.rules().read_only is False
    place.home.config.mkdir()
    (place.home.config / "rules.toml").write_text("read_only = false\n")
    place.write("true")
    assert place.rules().read_only is False


@pytest.mark.parametrize("kind", ["toml", "bytes", "long", "fifo", "link", "directory", "examples"])
def test_a_file_that_cannot_be_read_makes_everything_be_asked(place: Place, kind: str, tmp_path: Path) -> None:
    match kind:
        case "toml":
            place.file.write_text("[[deny")
        case "bytes":
            place.file.write_bytes(b"\xff")
        case "long":
            place.file.write_text("#" * (LONGEST + 1))
        case "fifo":
            os.mkfifo(place.file)
        case "link":
            (tmp_path / "other").write_text("")
            place.file.symlink_to(tmp_path / "other")
        case "directory":
            place.file.mkdir()
        case _:
            place.file.write_text('[[deny]]\nname = "x"\nprefix = ["a"]\nmatch = ["b"]\n')
    assert str(place.file) in (place.rules().broken or "")
    if kind in {"fifo", "link", "directory", "long"}:
        with pytest.raises(BadConfiguration):
            place.files.project.content(str(place.root))


def test_a_file_of_trust_that_is_broken_trusts_nothing(place: Place) -> None:
    place.files.trusted.trust(str(place.root), place.write())
    place.files.trusted.path.write_text("[]")
    assert place.rules().allow == ()
    with pytest.raises(BadConfiguration):
        place.files.trusted.trust(str(place.root), b"")
