"""Secrets are found where commands usually hold them, and nothing else is hidden with them."""

from tests.model.build import ASK, a_board, a_grant, a_shell, a_spec, judged, left_behind, opened, submitted
from tests.rows import each_row
from whisper_tui.model.call import Argv, Function
from whisper_tui.model.decision import Approve, Decider, PrefixScope
from whisper_tui.model.ending import Exited
from whisper_tui.model.masking import masked_command, masked_environment, masked_grant, masked_record
from whisper_tui.model.preview import BlockedAccess, Preview, PreviewReport
from whisper_tui.model.secrets import MASK, MOST_EXAMINED, masked, masked_json, masked_words, secret_spans
from whisper_tui.model.verdict import Meaning, Redirect, Resolved, Risk

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"


@each_row(
    ("text", "shown"),
    [
        ("PASSWORD=hunter2 run; ls", "PASSWORD=* run; ls"),
        ("PGPASSWORD='a b' psql", "PGPASSWORD=* psql"),
        ("export GITHUB_PAT=x", "export GITHUB_PAT=*"),
        ("run --token abc --verbose", "run --token * --verbose"),
        ("run --api-key=abc x", "run --api-key=* x"),
        ("curl -H 'Authorization: Bearer abc' h", "curl -H 'Authorization: Bearer *' h"),
        ('curl -H "X-Api-Key: abc" h', 'curl -H "X-Api-Key: *" h'),
        ("curl -u me:pw https://me:pw@h/x", "curl -u me:* https://me:*@h/x"),
        ("curl -ume:pw h", "curl -ume:* h"),
        ("curl 'https://h/?token=abc&page=1'", "curl 'https://h/?token=*&page=1'"),
        ("""curl -d '{"password": "a b", "n": 1}' h""", """curl -d '{"password": "*", "n": 1}' h"""),
        ("mysql -uroot -ppw db", "mysql -uroot -p* db"),
        ("sshpass -p pw ssh h", "sshpass -p * ssh h"),
        ("docker login -p pw r", "docker login -p * r"),
        ('docker run -e "DB_PASSWORD=a b" x', 'docker run -e "DB_PASSWORD=*" x'),
        ("aws configure set aws_secret_access_key A", "aws configure set aws_secret_access_key *"),
        (f"echo {TOKEN} | tee x", "echo * | tee x"),
        (f"cat > k <<E\n{KEY}\nE\nls", "cat > k <<E\n*\nE\nls"),
        ("cat > k <<E\n-----BEGIN PRIVATE KEY-----\nMIIE", "cat > k <<E\n*"),
        ('bash -c "TOKEN=x rm -rf /"', 'bash -c "TOKEN=* rm -rf /"'),
        ('sh -c "run --password pw h"', 'sh -c "run --password * h"'),
    ],
)
def test_a_secret_is_replaced_and_the_rest_stays(text: str, shown: str) -> None:
    assert masked(text) == shown.replace("*", MASK)


@each_row(
    "text",
    [
        "git status",
        "grep -r password: src",
        "run --max-tokens 100 --password-stdin --token-file f",
        "docker run -p 80:80 x",
        "git log --author=token",
        "PWD=/x OLDPWD=/y run",
        'run --password "$PASSWORD" --token ${TOKEN}; TOKEN=$(cat f) run',
        "curl -H 'Authorization: Bearer $TOKEN' h",
        "curl -u me h",
        "TOKEN= run",
        "",
    ],
)
def test_text_without_secrets_stays_unchanged(text: str) -> None:
    assert masked(text) == text
    assert secret_spans(text) == ()


def test_masking_is_idempotent() -> None:
    once = masked(f"PASSWORD=pw run --token {TOKEN}")
    assert masked(once) == once


def test_words_of_an_argv_are_checked_one_by_one() -> None:
    words = ("mysql", "-ppw", "--password", "a b", "--user=me", "SECRET=x; y")
    assert masked_words(words) == ("mysql", f"-p{MASK}", "--password", MASK, "--user=me", f"SECRET={MASK}")


def test_arguments_are_checked_by_their_names_at_every_depth() -> None:
    sent = {
        "url": "https://a:pw@h",
        "auth": {"apiKey": "x", "n": 1},
        "args": ["--token", "y"],
        "many": [{"token": "z"}],
    }
    assert masked_json(sent) == {
        "url": f"https://a:{MASK}@h",
        "auth": {"apiKey": MASK, "n": 1},
        "args": ["--token", MASK],
        "many": [{"token": MASK}],
    }


def test_a_variable_is_masked_by_its_name_or_by_the_shape_of_its_value() -> None:
    added = {"API_KEY": "x", "HEADER": f"token {TOKEN}", "LANG": "C", "EMPTY_TOKEN": ""}
    assert masked_environment(added) == {"API_KEY": MASK, "HEADER": f"token {MASK}", "LANG": "C", "EMPTY_TOKEN": ""}


def test_every_kind_of_command_is_masked() -> None:
    assert masked_command(Argv(program="run", args=("--token", "x"))) == Argv(program="run", args=("--token", MASK))
    assert masked_command(a_shell("TOKEN=x run").command) == a_shell(f"TOKEN={MASK} run").command
    function = Function(tool="post", arguments={"token": "x", "text": "hi"})
    assert masked_command(function) == Function(tool="post", arguments={"token": MASK, "text": "hi"})


def record_of(text: str, **verdict: object):
    found = ASK.model_copy(update=verdict)
    return a_board(opened(), submitted("1", a_shell(text)), judged(verdict=found)).record("1")


def test_the_secret_of_a_command_is_replaced_wherever_the_same_call_repeats_it() -> None:
    record = record_of("run --password hunter22")
    spoken = record.call.model_copy(
        update={"description": "Log in with hunter22", "arguments": {"command": "run", "args": ["hunter22"]}}
    )
    record = record.model_copy(
        update={
            "call": spoken,
            "resolved": Resolved(
                commands=(
                    Meaning(
                        words=("run", "--password", "hunter22", None),
                        assignments={"PGPASSWORD": "short", "OTHER": "x hunter22", "OPEN": None},
                        redirects=(Redirect(operator=">", target="hunter22.log", access="write"),),
                    ),
                )
            ),
            "decision": Approve(
                edited=a_shell("run2 --password hunter33"), remember=PrefixScope(words=("TOKEN=abc", "x"))
            ),
            "background": (left_behind().model_copy(update={"command": "run hunter22"}),),
        }
    )
    text = masked_record(record).model_dump_json()
    assert "hunter22" not in text and "hunter33" not in text and "TOKEN=abc" not in text
    assert "short" not in text
    assert "Log in with " in text and "run2 --password" in text


def test_a_secret_of_a_tools_arguments_is_replaced_wherever_the_same_call_repeats_it() -> None:
    nested = {"login": {"password": "hunter22"}, "tokens": [{"token": ["hunter33"]}], "note": "as hunter22, hunter33"}
    function = a_spec().model_copy(update={"command": Function(tool="login", arguments=nested)})
    for record in (
        a_board(opened(), submitted("1", function), judged()).record("1"),
        (plain := record_of("run now")).model_copy(
            update={"call": plain.call.model_copy(update={"arguments": nested})},
        ),
    ):
        call = record.call.model_copy(update={"description": "Log in with hunter22, then with hunter33"})
        text = masked_record(record.model_copy(update={"call": call})).model_dump_json()
        assert "hunter22" not in text and "hunter33" not in text
        assert "Log in with " in text and "as " in text


@each_row("part", ["echo", "hunter22", "--password hunter22", "rm y", "x; rm"])
def test_the_place_of_a_risk_moves_with_the_text(part: str) -> None:
    text = "echo a; run --password hunter22 x; rm y"
    risk = Risk(id="destructive", sentence="It deletes", span=(text.index(part), text.index(part) + len(part)))
    shown = masked_record(record_of(text, risks=(risk,)))
    (moved,) = shown.verdict.risks
    assert shown.spec.command.text[slice(*moved.span)] == part.replace("hunter22", MASK)


def test_a_record_without_a_secret_is_the_same_afterwards() -> None:
    record = record_of("git status; rm x", risks=(Risk(id="destructive", sentence="It deletes", span=(12, 14)),))
    assert masked_record(record) == record


def test_a_remembered_approval_is_masked() -> None:
    grant = a_grant(spec=a_spec(Argv(program="run", args=("--token", "x"))))
    assert masked_grant(grant).spec.command == Argv(program="run", args=("--token", MASK))


def test_only_searched_parts_of_a_very_long_text_are_shown() -> None:
    secret = "ghp_" + "a" * 36
    shown = masked("x " * MOST_EXAMINED + secret)
    assert secret not in shown
    assert shown.endswith("more characters⟩")
    assert masked_words(["ls", "y" * MOST_EXAMINED + secret])[1].endswith("⟨40 more characters⟩")


def test_texts_that_nearly_contain_secrets_are_searched_once() -> None:
    for text in ("eyJ-", "a-", "token-", "-----BEGIN A", "sk-"):
        assert masked(text * (MOST_EXAMINED // len(text)))


def test_what_a_preview_has_left_and_tried_is_masked() -> None:
    report = PreviewReport(
        ending=Exited(code=0),
        left=("serve --password hunter2secret",),
        blocked=(BlockedAccess(what="network", target="hunter2secret.example.org:443"),),
    )
    preview = Preview(attempt=1, by=Decider(surface="cockpit"), started_at=0.0, report=report)
    record = record_of("serve --password hunter2secret &").model_copy(update={"preview": preview})
    assert "hunter2secret" not in masked_record(record).model_dump_json()
