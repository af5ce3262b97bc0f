"""Well-known tokens are masked by their shape alone, wherever they stand; ordinary commands are not."""

import json
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rows import each_row
from whisper_tui.model.secrets import MASK, masked, masked_json, masked_words, secret_spans
from whisper_tui.model.token_shapes import SHAPES

ROOT = Path(__file__).parent.parent.parent
A, H, D = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zC0fR" * 8, "0123456789abcdef" * 20, "123456789012345678901234567890"
WELL_KNOWN = {
    "GitLab deploy": "gldt-" + A[:20],
    "GitLab runner": "glrt-" + A[:20],
    "GitLab job": "glcbt-64_" + A[:20],
    "Databricks": "dapi" + H[:32],
    "Doppler": "dp.pt." + A[:43],
    "Grafana": "glsa_" + A[:32] + "_" + H[:8],
    "Fly": "fm2_" + A[:120],
    "Notion": "ntn_" + D[:11] + A[:35],
    "Postman": "PMAK-" + H[:24] + "-" + H[:34],
    "RubyGems": "rubygems_" + H[:48],
    "Sentry": "sntryu_" + H[:64],
    "Pulumi": "pul-" + H[:40],
    "1Password": "ops_eyJ" + A[:256],
    "Alibaba": "LTAI" + A[:20],
    "PlanetScale": "pscale_tkn_" + A[:40],
    "Azure AD": "aB3" + "8Q~" + A[:34],
    "Slack app": "xapp-1-A0123456789-1234567890123-" + H[:64],
    "Perplexity": "pplx-" + A[:48],
    "GitHub": "ghp_" + A[:36],
}
CONTEXTS = ("mycli login {}", 'curl -H "X-Auth: {}" https://example.com', "echo '{}' > file", "a={};b", "{}", "f({},x)")


@pytest.mark.parametrize("name", WELL_KNOWN)
def test_a_well_known_token_is_masked_wherever_it_stands(name):
    token = WELL_KNOWN[name]
    for context in CONTEXTS:
        assert token[4:20] not in masked(context.format(token)), context
    assert masked_words(["mycli", "login", token]) == ("mycli", "login", MASK)
    assert token not in json.dumps(masked_json({"arguments": {"text": [f"use {token}"], "note": token}}))


@pytest.mark.slow
@each_row("name", [name for name, _, _ in SHAPES])
def test_samples_of_every_shape_are_masked(name):
    (keywords, pattern) = next((keywords, pattern) for each, keywords, pattern in SHAPES if each == name)
    shape = re.compile(pattern, re.ASCII)
    # A rule may need the name of the service somewhere in the text.
    service = next((word for word in keywords if word not in pattern.lower().replace("\\", "")), "")

    @settings(max_examples=4, database=None, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(shape, fullmatch=True))
    def samples(whole: str) -> None:
        token = shape.fullmatch(whole)[shape.groups]
        for context in ("mycli login {}", 'tool --header "X-Auth: {}"'):
            assert token not in masked(f"{service} {context.format(token)}")

    samples()


def test_ordinary_commands_hold_no_token():
    lines = (ROOT / "tests" / "policy" / "data" / "cases.jsonl").read_text().splitlines()
    texts = [json.loads(line)["command"] for line in lines]
    for page in [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        texts += page.read_text().splitlines()
    found = {text[start:end] for text in texts for start, end in secret_spans(text)}
    shapes = [re.compile(pattern, re.ASCII) for _, _, pattern in SHAPES]
    assert not {text for text in found for shape in shapes if shape.fullmatch(text)}


@each_row(
    "text",
    [
        f"git checkout {H[:40]}",
        f"git clone https://sourcegraph.com/x && git checkout {H[:40]}",
        f"docker pull alpine@sha256:{H[:64]}",
        "python -c 'import http.server as s; s.SimpleHTTPRequestHandler'",
        "pip install api-client patternlab pat.tests.unit",
        f"echo {H[:64]} | sha256sum -c",
        "ls docs.abcdefghijklmnopqrstuvwxyz",
    ],
)
def test_what_only_looks_like_a_token_is_shown(text):
    assert masked(text) == text


def test_no_shape_takes_long_over_a_hostile_text():
    # A pattern that goes back again and again would take hours for one of these, and the suite would end the test.
    for _, keywords, pattern in SHAPES:
        shape = re.compile(pattern, re.ASCII)
        for keyword in keywords:
            for filler in ("a", "A0", "-1", ".a", "_", "=", "/+", keyword, keyword.upper(), " "):
                for text in (keyword + filler * 30_000, (keyword.upper() + filler * 40) * 600 + "!"):
                    assert shape.search(text[:60_000]) is None or True


def test_the_keywords_of_a_shape_are_such_that_no_case_matters():
    assert all(word == word.lower() and len(word) > 1 for _, keywords, _ in SHAPES for word in keywords)
    assert masked("export X=" + "GHP_".lower() + A[:36]).endswith(MASK)


def test_a_long_command_is_searched_too():
    words = ["echo", *["x" * 50] * 500, WELL_KNOWN["Pulumi"]]
    assert masked(shlex.join(words)).endswith(MASK)
