"""Looking at the effects of a command runs nothing, waits for nothing, and ends, whatever the tree is."""

import os
import subprocess
from pathlib import Path

import pytest

from whisper_tui.effects import effects_of
from whisper_tui.effects.changes import diff_of
from whisper_tui.model.call import Shell
from whisper_tui.model.effects import Effects
from whisper_tui.system import host_files
from whisper_tui.system.caged_program import cage_problem


def looked(text: str, workspace: Path, **environment: str) -> Effects:
    effects = effects_of(Shell(text=text), str(workspace), [str(workspace)], {"HOME": "/nonexistent", **environment})
    assert Effects.model_validate_json(effects.model_dump_json()) == effects
    return effects


def test_a_fifo_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert looked("echo x > pipe; cat pipe > y; bash pipe; make -f pipe; git apply pipe", tmp_path).files[0].before == (
        "special"
    )


def test_files_of_proc_and_devices_are_never_opened(tmp_path: Path) -> None:
    effects = looked("echo x > /proc/self/comm; cat /proc/kmsg > y; cp /dev/zero z; bash /dev/zero", tmp_path)
    assert all(file.diff is None for file in effects.files)


def test_a_loop_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "up").symlink_to(".")
    looked("echo x > a/c; rm -r a up; cp -r up/up/up y; cat */*/*/*/*/* > z", tmp_path)


def test_a_large_tree_is_counted_until_the_time_is_over(tmp_path: Path) -> None:
    for outer in range(40):
        directory = tmp_path / f"d{outer}"
        directory.mkdir()
        for inner in range(100):
            (directory / f"f{inner}").touch()
    effects = effects_of(Shell(text="rm -rf d*"), str(tmp_path), [str(tmp_path)], {}, budget_s=0.001)
    # On a busy machine the time may be over before anything was counted.
    assert not effects.complete or not effects.removals[0].complete
    assert all(removal.files < 4000 for removal in effects.removals)


@pytest.mark.parametrize(("budget_s", "complete"), [(0.15, False), (20, True)])
def test_a_tree_on_a_slow_disk_is_counted_if_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget_s: float, complete: bool
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").touch()
    counted = host_files.tree
    monkeypatch.setattr(host_files, "tree", lambda path, seconds: counted(path, seconds - 1))
    effects = effects_of(Shell(text="rm -rf d"), str(tmp_path), [str(tmp_path)], {}, budget_s=budget_s)
    assert (effects.complete and all(removal.complete for removal in effects.removals)) == complete


def test_names_with_control_characters_and_without_encoding_can_be_sent(tmp_path: Path) -> None:
    strange = os.fsencode(tmp_path) + b"/\xff\xfe\x1b[2J\nname"
    Path(os.fsdecode(strange)).write_text("x")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    effects = looked("rm -f *; git clean -fd", tmp_path)
    assert "\\xff" in effects.removals[0].paths[0]


@pytest.mark.parametrize(
    "text", ["echo \ud800 > \udcff", "rm \0", "echo x > " + "a" * 5000, "cd " + "/x" * 3000, "\x01"]
)
def test_texts_that_no_system_takes_are_no_error(text: str, tmp_path: Path) -> None:
    looked(text, tmp_path)


def test_a_file_that_is_large_or_binary_has_no_diff_and_the_reason(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (2 << 20))
    (tmp_path / "binary").write_bytes(b"\0\1")
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    large, binary, latin = looked("echo x > large; echo x > binary; echo x > latin", tmp_path).files
    assert (large.no_diff, binary.no_diff) == ("the file is larger than 1 MiB", "the content is binary")
    assert latin.no_diff == "the content is not UTF-8 text"


def test_texts_that_are_made_to_be_slow_to_compare_are_shown_whole_once_time_is_over() -> None:
    old = "".join(f"{number}\n" + "a\nb\n" * 45 for number in range(200))
    new = "".join(f"{number}\n" + "b\na\n" * 45 for number in range(200))
    diff, _ = diff_of(old.encode(), new.encode(), lambda: True)
    assert diff is not None and (diff.added, diff.removed) == (200 * 90, 200 * 90)


@pytest.mark.parametrize(
    "setting",
    ["core.fsmonitor=touch ran", "core.hooksPath=hooks", "filter.evil.clean=touch ran", "diff.external=touch ran",
     "core.sshCommand=touch ran", "alias.co=!touch ran", "include.path=other"],
)  # fmt: skip
def test_settings_of_a_repository_run_nothing(setting: str, tmp_path: Path) -> None:
    subprocess.run(
        "git init -q; git config user.name n; git config user.email e; echo '* filter=evil' > .gitattributes;"
        " echo a > a; git add .; git commit -qm x; echo b > a",
        shell=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    name, _, value = setting.partition("=")
    subprocess.run(["git", "config", name, value], cwd=tmp_path, check=True)
    before = sorted(os.listdir(tmp_path))
    effects = looked("git status; git reset --hard; rm -r a; git push; git co x; git clean -fdx", tmp_path)
    assert sorted(os.listdir(tmp_path)) == before
    assert not effects.files_are_certain
    assert any("may run programs" in each.reason for each in effects.unknown)
    if cage_problem():
        assert "may run programs" in effects.removals[0].no_git


def test_a_program_named_git_in_the_path_is_not_run(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "git").write_text("#!/bin/sh\ntouch ran\n")
    (tmp_path / "git").chmod(0o755)
    looked("git reset --hard; git status", tmp_path, PATH=str(tmp_path))
    assert not (tmp_path / "ran").exists()


def test_a_file_that_changes_the_meaning_of_an_argument_of_git_does_nothing(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    looked("git reset --hard --output=ran; git checkout --output=ran; git log --output=ran", tmp_path)
    looked("git branch -D --output=ran; git push origin --output=ran; git merge -- --output=ran", tmp_path)
    assert not (tmp_path / "ran").exists()
