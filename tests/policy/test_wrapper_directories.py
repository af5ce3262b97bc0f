"""Wrappers whose words make their command run in another directory, in every spelling of these words."""

import shlex

from tests.rows import each_row
from whisper_tui.policy.commands.wrapper_directories import runs_elsewhere

ELSEWHERE = """
env -C sub ls
env -Csub ls
env -iC sub ls
env --chdir=sub ls
env --ch sub ls
env --no-such-option ls
sudo -D sub ls
sudo -nDsub ls
sudo --login ls
sudo -ni ls
sudo --chroot=/x ls
unshare --wd=sub ls
chroot /x ls
su - ann -c ls
su -c ls -
su --log ann -c ls
su -lc ls ann
runuser -l ann -c ls
systemd-run ls
"""
HERE = """
env ls
env A=b ls -C
env -u C ls
sudo -u ann ls -i
su ann -c ls
timeout 5 ls -C
ls -C
"""


@each_row("line", ELSEWHERE.strip().splitlines())
def test_another_directory_is_noticed(line: str) -> None:
    assert runs_elsewhere(shlex.split(line))


@each_row("line", HERE.strip().splitlines())
def test_options_of_the_command_behind_are_not_those_of_the_wrapper(line: str) -> None:
    assert not runs_elsewhere(shlex.split(line))
