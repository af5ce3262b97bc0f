"""`python scripts/token_shapes.py CHECKOUT`: write the shapes of well-known tokens from the rules of gitleaks (MIT).

CHECKOUT is a clone of gitleaks, with or without files: `git clone https://github.com/gitleaks/gitleaks`. Its rules are
regular expressions of Go for files. Those that know a token by its own shape are taken, as expressions of Python for
the text of commands; those that need the name of a service before it are not, because a value behind a name is masked
by the name (`whisper_tui/model/secrets.py`).
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "whisper_tui" / "model" / "token_shapes.py"
RULES = "config/gitleaks.toml"
OF_LINES = {
    "curl-auth-header": "headers are masked by their own pattern",
    "curl-auth-user": "options of programs are masked by their own table",
    "freemius-secret-key": "values are masked by their names",
    "generic-api-key": "values are masked by their names",
    "kubernetes-secret-yaml": "it is of whole files",
    "nuget-config-password": "values are masked by their names",
    "pkcs12-file": "it is of names of files",
    "private-key": "masked by a pattern of its own, also where its end is missing",
    "sidekiq-sensitive-url": "passwords in addresses are masked by their place",
    "slack-webhook-url": "addresses are masked by a pattern of their own",
    "jwt": "masked by a pattern of its own",
}
"""Rules that are no shapes of tokens, and why they are not taken."""
ADAPTED = {
    "sourcegraph-access-token": ("|[a-fA-F0-9]{40}", ""),
    "azure-ad-client-secret": (r"""(?:$|[\\'"\x60\s<),])""", r"(?![\w~.-])"),
    "vault-service-token": (r"s\.(?i:[a-z0-9]{24})", r"s\.(?=[A-Za-z]{0,23}[0-9])(?i:[a-z0-9]{24})"),
}
"""Parts of rules that match ordinary text as well, such as the digest of a commit, or that text of commands lacks."""
_NAMED = "(?:=|>|:{1,3}="
"""Stands in the rules that need a name and a sign before the token."""
_ENDS = re.compile(
    r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)\Z|\(\?:\[\^\\w-\]\|\\z\)\Z|\(\?:\[\^a-zA-Z0-9\+/\]\|\\z\)\Z"
)
"""Matches what has to follow a token in a file. In a command anything else than a letter may."""
_LITERAL = re.compile(r"(?:[A-Za-z0-9_-]|\\?[.-])+")


def shapes(rules: list[dict[str, Any]]) -> dict[str, tuple[tuple[str, ...], str]]:
    """Return the keywords and the pattern of each rule that is taken."""
    found = {}
    for rule in rules:
        pattern = rule.get("regex", "")
        if rule["id"] in OF_LINES or not pattern:
            continue
        pattern = pattern.replace(*ADAPTED.get(rule["id"], ("", "")))
        keywords = tuple(sorted({word.lower() for word in rule["keywords"]}))
        if _NAMED in pattern:
            inner = _last_group(_ENDS.sub("", pattern))
            literal = _LITERAL.match(inner)
            prefix = (
                literal.group().replace("\\", "") if literal and inner[literal.end() : literal.end() + 1] == "[" else ""
            )
            if len(prefix) < 4 or prefix.isalnum():
                continue
            keywords, pattern = (prefix.lower(),), rf"(?i)\b{inner}"
        literal = re.sub(r"\\(?=[.-])", "", pattern).lower()
        first = re.match(r"(?:\(|\\b)*([a-z]{3,})", pattern)
        if first is not None and not any(word in literal for word in keywords):
            keywords = (first[1],)
        pattern = _of_python(_ENDS.sub(r"(?!\\w)", pattern))
        re.compile(pattern, re.ASCII)
        found[rule["id"]] = keywords, pattern
    return found


def _last_group(pattern: str) -> str:
    """Return what is in the last capturing group of the outer level."""
    depth, starts, last = 0, [], ""
    at = 0
    while at < len(pattern):
        step, text = _token(pattern, at)
        if text.startswith("("):
            starts.append(at + len(text) if text == "(" and depth == 0 else -1)
            depth += text != "(?i)"
            if text == "(?i)":
                starts.pop()
        elif text == ")":
            depth -= 1
            start = starts.pop()
            if start >= 0:
                last = pattern[start:at]
        at += step
    return last


def _token(pattern: str, at: int) -> tuple[int, str]:
    """Return the length and the text of the next part of an expression."""
    found = re.compile(
        r"\\x[0-9A-Fa-f]{2}|\\.|\[\^?\]?(?:\[:\w+:\]|\\.|[^\]\\])*\]|\(\?i\)|\(\?[-i]*:|\(\?P?<\w+>|\(\?[!=]|.",
        re.DOTALL,
    ).match(pattern, at)
    assert found is not None
    return len(found.group()), found.group()


def _of_python(pattern: str) -> str:
    """Return an expression of Go as one of Python, whose only group is the token."""
    made, flags, opened, at = [], [0], [-1], 0
    once = []
    while at < len(pattern):
        step, text = _token(pattern, at)
        at += step
        if text == "(?i)":
            # In Go it lasts until the end of its group, in every branch.
            made.append("(?i:")
            flags[-1] += 1
        elif text == "|":
            made.append(")" * flags[-1] + "|" + "(?i:" * flags[-1])
        elif text == ")":
            made.append(")" * flags.pop() + ")")
            start = opened.pop()
            if made[start] == "(":
                made[start] = "(?:"
                # A part that is repeated is not the token.
                once += [start] if pattern[at : at + 1] not in {"{", "*", "+", "?"} else []
        elif text.startswith("("):
            opened.append(len(made))
            made.append("(?:" if text.startswith("(?P<") else text)
            flags.append(0)
        else:
            made.append(text.replace("[:alnum:]", "A-Za-z0-9").replace("\\z", "\\Z").replace("\\x60", "`"))
    if once:
        made[min(once)] = "("
    return "".join(made) + ")" * flags.pop()


def main(checkout: str) -> None:
    """Write the module."""
    git = ["git", "-C", checkout]
    commit = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip()
    text = subprocess.check_output([*git, "show", f"HEAD:{RULES}"], text=True)
    found = shapes(tomllib.loads(text)["rules"])
    lines = [
        '"""Shapes of well-known tokens. Made by scripts/token_shapes.py: change that, and run it again.',
        "",
        "From the rules of gitleaks, https://github.com/gitleaks/gitleaks, file config/gitleaks.toml,",
        f"commit {commit}.",
        "Copyright (c) 2019 Zachary Rice, MIT license: see NOTICE.",
        '"""',
        "",
        "SHAPES: tuple[tuple[str, tuple[str, ...], str], ...] = (",
        *(f"    ({name!r}, {keywords!r}, {pattern!r})," for name, (keywords, pattern) in sorted(found.items())),
        ")",
        '"""The name of each, texts of which one occurs in lower case in every text that holds such a token, and an',
        "expression whose first group, or else the whole of it, is the token. Its letters are those of ASCII alone.",
        '"""',
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)], check=True)
    sys.stdout.write(f"{len(found)} shapes are in {TARGET}\n")


if __name__ == "__main__":
    main(sys.argv[1])
