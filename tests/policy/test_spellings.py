"""Rules that deny or ask, and dangers, hold in every spelling that the program itself accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.policy.build import FOUND, a_question
from tests.rows import each_row
from whisper_tui.model.call import CommandSpec, Shell
from whisper_tui.policy.commands.readings import find_words, first_words, read_words
from whisper_tui.policy.evaluate import evaluate
from whisper_tui.policy.rules.rule import Effect, Rule, Rules
from whisper_tui.policy.view import view

CWD = "/home/me/project"


def judged(text: str, *denied: str, pattern: str | None = None, effect: Effect = "deny", allow: bool = True) -> str:
    """The verdict on a command whose programs are all allowed, with one rule against it."""
    spec = CommandSpec(command=Shell(text=text), cwd=CWD)
    against = Rule(name="no", pattern=pattern) if pattern else Rule(name="no", prefix=denied)
    names = view(spec.command).names if allow else ()
    rules = {"allow": tuple(Rule(name=name, prefix=(name,)) for name in names), effect: (against,)}
    found = FOUND.model_copy(update={"cwd": CWD, "shell": "bash"})
    return evaluate(a_question(spec, resolved=found, session_root=CWD), Rules(**rules), ()).kind


def risks(text: str) -> set[str]:
    return {danger.id for _, danger in view(Shell(text=text)).dangers}


OPTIONS_BETWEEN = {
    "kubectl delete": [
        "kubectl -n prod delete pod x",
        "kubectl --context c -n p delete pod x",
        "kubectl -v=8 delete x",
        "kubectl $OPTIONS delete x",
        "sudo kubectl -n prod delete x",
    ],
    "gh pr merge": ["gh -R a/b pr merge 1", "gh pr -R a/b merge 1", "gh --repo a/b pr merge 1"],
    "docker compose down": [
        "docker compose -f x.yml down -v",
        "docker compose --profile a --profile b down",
        "docker-compose -f x.yml down",
        "docker --context c compose -p n down",
    ],
    "docker rm": ["docker --context c rm -f x", "docker -H tcp://h rm x"],
    "aws s3 rm": ["aws --profile p s3 rm s3://b", "aws --profile p --region r s3 rm s3://b"],
    "npm publish": ["npm -w x publish", "npm --prefix x publish"],
    "pnpm publish": ["pnpm --filter a publish", "pnpm -C x publish"],
    "helm uninstall": ["helm -n x uninstall y"],
    "heroku pg:reset": ["heroku -a x pg:reset"],
    "fly apps destroy": ["fly -a x apps destroy y", "flyctl -a x apps destroy y"],
    "systemctl stop": ["systemctl -H h stop x", "systemctl --user --machine m stop x"],
    "pulumi destroy": ["pulumi -C x destroy", "pulumi --cwd x destroy"],
    "terraform destroy": ["terraform -chdir=x destroy"],
    "cargo publish": ["cargo +nightly publish", "cargo --config x +nightly publish"],
    "go generate": ["go -C x generate"],
    "make deploy": ["make -C x deploy", "make -j 4 deploy", "make clean deploy"],
    "git push": ["git -C x push", "git -c a=b --git-dir x push", "git --namespace n push"],
}


@each_row(("denied", "text"), [(denied, text) for denied, texts in OPTIONS_BETWEEN.items() for text in texts])
def test_options_between_a_program_and_its_subcommand_hide_nothing(denied: str, text: str) -> None:
    words = denied.split()
    assert judged(text, *words) == "refuse"
    assert judged(text, pattern=denied + "*") == "refuse"
    assert judged(text, *words, effect="ask") == "ask"


SAME = {
    "npm install": ["npm i x", "npm add x", "npm in x", "npm inst x", "npm it", "npm install-test"],
    "npm ci": ["npm cit", "npm clean-install-test"],
    "npm config set": ["npm set a=b", "npm c set a=b"],
    "npm exec": ["npx x"],
    "npx": ["npm exec x", "npm x y"],
    "yarn install": ["yarn", "yarn --frozen-lockfile"],
    "yarn add": ["yarn workspace a add x"],
    "pnpm publish": ["pnpm recursive publish", "pnpm m publish"],
    "python -m pip": ["python3 -mpip install x", "python3 -Im pip install x", "python3 -B -m pip list"],
    "ip addr add": ["ip address add a dev b", "ip addres add a dev b", "ip -n ns a a x dev b"],
    "ip address": ["ip addr"],
    "nmcli con del": ["nmcli connection delete x", "nmcli -t c d x"],
    "php artisan migrate:fresh": ["php artisan mig:fr", "php8.2 artisan migrate:fres"],
    "composer require": ["composer req x", "composer -d x requ y"],
    "gem install": ["gem i x", "gem inst x"],
    "bundle exec": ["bundle e x"],
    "opam install": ["opam inst x"],
    "gradle publish": ["gradle :a:publish", "gradle clean publ"],
    "git push": ["git-push origin", "git send-pack x", "git subtree push --prefix x o m"],
    "cargo publish": ["cargo-publish"],
    "tar -x": ["tar xf a", "tar vxf a"],
    "tar --extract": ["tar xzf a"],
    "tar -xf": ["tar xf a"],
    "ar -r": ["ar r x.a y.o"],
    "dpkg -i": ["dpkg --install x", "dpkg -Gi x"],
    "pacman -S": ["pacman --sync x", "pacman -Syu"],
    "iptables -F": ["iptables --flush", "iptables -t nat --flus"],
    "npm run deploy": ["npm run-script deploy", "npm --silent run deploy"],
    "npm publish": ["npm publis"],
    "yarn run deploy": ["yarn deploy", "yarn workspace a run deploy", "yarn workspace a deploy"],
    "yarn deploy": ["yarn run deploy"],
    "docker rm": ["docker container rm x", "docker container remove x"],
    "docker container rm": ["docker rm x"],
    "docker rmi": ["docker image rm x"],
    "helm uninstall": ["helm delete x", "helm del x", "helm un x"],
    "pip install": ["pip3 install x", "pip3.11 install x", "python3 -m pip install x", "python3 -Impip install x"],
    "pip3 install": ["pip install x"],
    "python -m http.server": ["python3 -m http.server"],
    "terraform destroy": ["terraform apply -destroy"],
    "git remote rm": ["git remote remove x"],
    "ip link": ["ip l set eth0 down", "ip li"],
    "git commit --no-verify": ["git commit -n -m x", "git commit -nm x", "git commit -anm x", "git commit --no-ver"],
    "git push --force": ["git push -f", "git push origin main -f", "git push --forc"],
    "git push -f": ["git push --force"],
    "git clean -fd": ["git clean -f -d", "git clean --force -d"],
    "rm -rf": ["rm -fr x", "rm -r -f x", "rm --recursive --force x", "rm x -rfv", "rm -R --fo x", "/bin/rm -rf x"],
    "rm --recursive": ["rm -r x", "rm -R x"],
    "chmod -R": ["chmod --recursive 755 x", "chmod --recurs 755 x"],
    "sed -i": ["sed --in-place s/a/b/ x", "sed -ni.bak p x"],
    "curl -X DELETE": ["curl -XDELETE h", "curl -sX DELETE h", "curl --request DELETE h", "curl h --request=DELETE"],
    "kubectl apply -f": ["kubectl apply --filename x", "kubectl -n p apply -f x"],
}


@each_row(("denied", "text"), [(denied, text) for denied, texts in SAME.items() for text in texts])
def test_a_denial_holds_for_every_spelling_that_the_program_accepts(denied: str, text: str) -> None:
    assert judged(text, *denied.split()) == "refuse"


@each_row(
    ("denied", "text"),
    [
        ("kubectl delete", "kubectl -n prod get pods"),
        ("kubectl delete", "kubectl get delete"),
        ("git commit --no-verify", "git commit -m no-verify"),
        ("git commit --no-verify", "git push -n"),
        ("git push --force", "git push --force-with-lease"),
        ("make deploy", "make clean"),
        ("rm -rf", "rm -r x"),
        ("rm -rf", "rm -f x"),
        ("npm install", "npm run install-hooks"),
        ("docker rm", "docker run --rm x"),
        ("curl -X DELETE", "curl -X GET http://h/DELETE"),
        ("kubectl get --all-namespaces", "kubectl get --all x"),
        ("pip install", "pipx install x"),
        ("pip install", "python3 -m venv install"),
        ("pip install", "python3 x.py -m pip install"),
        ("ip addr add", "ip addr show"),
        ("yarn install", "yarn build"),
        ("yarn add", "yarn workspace add build"),
        ("tar -x", "tar cf x a"),
        ("git push", "git subtree split"),
    ],
)
def test_another_command_is_not_taken_for_a_denied_one(denied: str, text: str) -> None:
    assert judged(text, *denied.split()) != "refuse"


def test_nothing_that_a_rule_allows_is_read_in_another_way() -> None:
    allowed = Rules(allow=(Rule(name="get", prefix=("kubectl", "get")), Rule(name="i", prefix=("npm", "install"))))
    for text in ("kubectl -n prod get pods", "npm i x"):
        spec = CommandSpec(command=Shell(text=text), cwd=CWD)
        found = FOUND.model_copy(update={"cwd": CWD, "shell": "bash"})
        assert evaluate(a_question(spec, resolved=found, session_root=CWD), allowed, ()).kind == "ask"


def test_any_number_of_options_is_read_at_once() -> None:
    argv = ("kubectl", *("-x", "a") * 4000, "delete", "pod")
    assert find_words(read_words(argv), ("delete",)) == (8001,)
    assert find_words(read_words(argv), ("get",)) is None


def test_the_possible_subcommands_end_with_the_first_word_that_can_be_nothing_else() -> None:
    assert first_words(("docker", "--context", "c", "rm", "x")) == [(2, "c"), (3, "rm")]
    assert first_words(("docker", "--context=c", "rm", "x")) == [(2, "rm")]
    assert first_words(("docker", "-D", "--", "rm")) == [(3, "rm")]
    assert first_words(("docker",)) == []


@each_row(
    "text",
    [
        "kubectl -n prod delete deploy x",
        "helm -n prod uninstall x",
        "helm -n prod del x",
        "aws --profile prod ec2 terminate-instances --instance-ids i-1",
        "docker --context prod rm -f x",
        "docker container remove -f x",
        "docker-compose -f a.yml down -v",
        "docker compose -f a.yml down -v",
        "systemctl -H host stop x",
        "pulumi -C x destroy",
        "heroku -a x pg:reset",
        "fly -a x apps destroy y",
        "supabase --workdir x db reset",
        "pnpm --filter a publish",
        "gh -R a/b release delete v1",
        "git stash --quiet drop",
        "journalctl --vacuum-s=1M",
        "pip3 uninstall -y x",
        "php artisan migrate:fres",
    ],
)
def test_a_danger_is_seen_behind_options(text: str) -> None:
    assert "destructive" in risks(text)
    assert judged(text, "never-called") == "ask"


def test_a_service_is_started_behind_options() -> None:
    assert "persistence" in risks("systemctl -H host restart x")


@each_row(
    "text",
    [
        "docker compose -f x.yml exec app rm -rf /data",
        "docker-compose -f x.yml exec app rm -rf /data",
        "docker compose -f x.yml run app rm -rf /data",
        "kubectl -n prod exec pod -- rm -rf /data",
        "kubectl --context c exec -it pod -- rm -rf /data",
    ],
)
def test_a_command_in_a_container_is_found_behind_options(text: str) -> None:
    assert judged(text, "rm") == "refuse"


def beginnings(option: str) -> list[str]:
    return [option[:length] for length in range(3, len(option) + 1)]


@pytest.mark.skipif(shutil.which("rm") is None, reason="needs rm")
@pytest.mark.parametrize("given", [*beginnings("--recursive"), "-r", "-R", "-vr"])
def test_what_rm_itself_takes_for_recursive_is_denied_as_recursive(given: str, tmp_path: Path) -> None:
    place = tmp_path / "tree"
    (place / "inner").mkdir(parents=True)
    subprocess.run(["rm", given, str(place)], check=False, capture_output=True)
    # whatever rm does not accept may be refused as well
    assert place.exists() or judged(f"rm {given} tree", "rm", "-r") == "refuse"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("given", [*beginnings("--no-verify"), "-n", "-qn", "-anm"])
def test_what_git_itself_takes_for_no_verify_is_denied_as_no_verify(given: str, tmp_path: Path) -> None:
    def git(*words: str) -> int:
        named = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", f"core.hooksPath={tmp_path}/hooks")
        return subprocess.run(["git", *named, *words], cwd=tmp_path, check=False, capture_output=True).returncode

    git("init", "-q")
    (tmp_path / "hooks").mkdir()
    hook = tmp_path / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    assert git("commit", "--allow-empty", "-m", "held") != 0
    message = () if given.endswith("m") else ("-m",)
    passed = git("commit", "--allow-empty", given, *message, "x") == 0
    assert not passed or judged(f"git commit {given} x", "git", "commit", "--no-verify") == "refuse"
