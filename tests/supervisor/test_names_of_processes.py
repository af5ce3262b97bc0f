"""Names that mean something else for each process: `/dev/stderr`, `/proc/self/cwd`. They are never the supervisor's."""

import os
from pathlib import Path

import pytest

from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.rules.rule import Rules
from whisper_tui.policy.view import view
from whisper_tui.supervisor.approvals.judge import judge_alone
from whisper_tui.supervisor.approvals.resolve import find_places
from whisper_tui.system import host_files, process_names

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "F": "/dev/stderr"}

RULES = Rules(read_only=True)


@pytest.mark.parametrize(
    "text",
    [
        "echo x > /dev/stderr",
        "echo x >> /dev/stdout",
        "ls 2> /dev/fd/1",
        "ls &> /proc/self/fd/2",
        "sh -c 'echo x > /dev/stderr'",
        "echo x > $F",
        "echo x | tee /dev/stderr",
    ],
)
def test_writing_to_the_output_by_its_name_is_no_risk(text: str, tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    spec = CommandSpec(command=Shell(text=text), cwd=str(tmp_path))
    verdict, resolved = judge_alone(spec, Rules(), ENVIRONMENT, root=str(tmp_path), own=(own,), now=0.0)
    assert [risk.sentence for risk in verdict.risks] == []
    assert resolved.sensitive == {}


@pytest.mark.parametrize("text", ["echo x > /dev/stderr", "ls > /dev/stdout", "ls 2> /dev/fd/1"])
def test_what_runs_unasked_runs_so_with_its_output_named(text: str, tmp_path: Path) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=str(tmp_path))
    assert judge_alone(spec, RULES, ENVIRONMENT, root=str(tmp_path), now=0.0)[0].kind == "allow"


@pytest.mark.parametrize(
    "text", ["echo x > /dev/fd/3", "echo x > /dev/stdin", "echo x 1<> /dev/stderr", "ls > /dev/tty"]
)
def test_other_names_of_descriptors_are_asked(text: str, tmp_path: Path) -> None:
    spec = CommandSpec(command=Shell(text=text), cwd=str(tmp_path))
    assert judge_alone(spec, RULES, ENVIRONMENT, root=str(tmp_path), now=0.0)[0].kind == "ask"


def test_no_path_is_resolved_in_the_own_process(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stderr")
    (tmp_path / "here").symlink_to("/proc/self/cwd")
    for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/self/root/etc", f"/proc/{os.getpid()}/cwd"):
        assert host_files.realpath(name) == name
    assert host_files.realpath(str(tmp_path / "link")) == "/dev/stderr"
    assert host_files.realpath("/proc/self/cwd/../x", str(tmp_path / "sub")) == str(tmp_path / "x")
    assert host_files.realpath(str(tmp_path / "here" / "x"), str(tmp_path)) == str(tmp_path / "x")
    assert host_files.realpath("/proc/net/tcp") == "/proc/net/tcp"


def test_a_path_is_resolved_as_the_kernel_does_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "to").symlink_to("a/b")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("to/../x", "to/none/../y", "none", "a/./b/", "to/.."):
        assert host_files.realpath(f"{tmp_path}/{name}") == os.path.realpath(f"{tmp_path}/{name}")
    assert host_files.realpath(str(tmp_path / "loop")).startswith(str(tmp_path))


def test_a_link_to_the_own_output_is_a_place_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/stderr")
    (place,) = find_places(view(Shell(text="cat link")), str(tmp_path), ())
    assert (place.path, place.kind) == ("/dev/stderr", "process")


def test_descriptors_have_numbers() -> None:
    assert process_names.descriptor_of("/dev/stdin") == 0
    assert process_names.descriptor_of("/proc/self/fd/17") == 17
    assert process_names.descriptor_of("/dev/null") is None
    assert process_names.is_output("/dev/stderr")
    assert not process_names.is_output("/dev/fd/3")
