"""Secrets in the text of commands: finding and masking them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

MASK = "⟨secret⟩"
"""Replaces a secret. Its brackets are no shell syntax, so that masked text does not look like a command to copy."""

MOST_EXAMINED = 100_000
"""Limit of characters that are searched for secrets."""

Span = tuple[int, int]

_NAME = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE|TOKEN|SECRET|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|SECRET_?KEY|CREDENTIALS?|"
    r"ENCRYPTION_?KEY|SIGNING_?KEY|MASTER_?KEY|ACCOUNT_?KEY|SHARED_?KEY|SECRET_KEY_BASE|SSHPASS|STOREPASS|KEYPASS|"
    r"(?:^|_)(?:PASS|PAT)|._(?:PWD|AUTH))\Z",
    re.I,
)
_SHAPES = re.compile(
    r"\bgh[oprsu]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bsk-[\w-]{20,}|\b[rs]k_(?:live|test)_\w{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\bpypi-[\w-]{32,}|\bhf_[A-Za-z0-9]{30,}|\beyJ[\w-]{10,1000}+\.[\w-]{10,}\.[\w-]*"
    r"|\bhv[sbr]\.[\w-]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bdo[opr]_v1_[0-9a-f]{32,}|\bAGE-SECRET-KEY-1[A-Z0-9]{40,}"
    r"|\blin_(?:api|oauth)_\w{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.*?-----END [A-Z ]*PRIVATE KEY-----|.*)",
    re.DOTALL,
)
"""Shapes that are wider than those of `token_shapes`, which knows many more: a token may be of a later length."""
_HEADER = re.compile(
    r"\b(?:(?:proxy-)?authorization:\s*(?:(?:bearer|basic|token|digest|negotiate)\s+)?(?P<credentials>[^\s'\"]+)"
    r"|cookie:\s*(?P<cookie>[^'\"\n]+)"
    r")|(?<![\w-])[\w-]*(?:api-?key|token|secret):\s*(?P<key>[^\s'\",}]+)",
    re.I,
)
_IN_URL = re.compile(r"://[^/\s:@'\"]*:(?P<secret>[^/\s@'\"]+)@")
_IN_CONTEXT = tuple(
    re.compile(pattern)
    for pattern in (
        # Addresses that are secrets themselves, and secrets in addresses.
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{16,})",
        r"discord(?:app)?\.com/api/webhooks/\d+/(?P<secret>[\w-]{16,})",
        r"api\.telegram\.org/(?:file/)?bot(?P<secret>\d+:[\w-]{16,})",
        r"://(?P<secret>[A-Za-z0-9_-]{20,})(?::x-oauth-basic)?@",
        r"[?&](?:sig|(?:X-Amz-|X-Goog-)?Signature|X-Amz-Security-Token)=(?P<secret>[\w%+/=-]{16,})",
        # What is written for a program that reads its secret from standard input.
        r"\b(?:echo|printf)\s+(?:-\w+\s+)?(?:'%s(?:\\n)?'\s+)?['\"]?(?P<secret>[^\s'\"|]+)['\"]?\s*\|\s*"
        r"(?:\w+\s+login\b[^|;&\n]{0,200}--password-stdin|sudo\s+(?:-[A-Za-z]+\s+)*-[A-Za-z]*S)",
        r"\b(?:echo|printf)\s+(?:-\w+\s+)?['\"]?[\w.-]+:(?P<secret>[^\s'\"|]+)['\"]?\s*\|\s*(?:sudo\s+)?chpasswd\b",
        # Files of secrets that are written by a command.
        r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<secret>[^\s'\"]+)",
    )
)
_IN_YAML = re.compile(r"(?:\n|\\n)[ \t]*(?P<name>[\w.-]+):[ \t]+(?P<secret>(?:[^\s'\"\\]|\\(?!n))+)")
_IN_LIST = re.compile(r",(?P<name>[A-Za-z_][\w.-]*)=(?P<secret>[^\s\"'&;|<>()`,]+)")
_IN_OBJECT = re.compile(
    r"(?P<quote>\\?[\"'])(?P<name>[\w.-]+)(?P=quote)\s*:\s*(?P=quote)(?P<secret>[^\"'\\\n]*)(?P=quote)"
)
_SETTING = re.compile(r"(?<![\w.-])-{0,2}(?P<name>[A-Za-z_][\w.-]*)=(?P<secret>[^\s\"'&;|<>()`]+)")
_NAMED_WORD = re.compile(r"[\"']?-{0,2}(?P<name>[A-Za-z_][\w.-]*)=")
_SHELL_WORD = re.compile(r"(?:[^\s'\"\\;|&<>()]|\\.|'[^']*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z))+", re.DOTALL)
_ENDS_COMMAND = frozenset(";|&()\n")
_REFERENCE = re.compile(r"[\"']?(?:\$[({]|`|\$\w+(?=[\"'\s;|&<>(),}]|\Z))")
"""Matches the beginning of a variable or a substitution: a reference to a secret, and not the secret itself."""
_HINT = re.compile(
    r"pass|token|secret|key|cred|pat\b|_pwd|_auth|curl|redis|docker|podman|mongo|ldap|zip|mysql|mariadb|\b7z|openssl"
    r"|sqlcmd|smbclient|lftp|nmcli|twine|\baz\b|cargo|vault|poetry|\bhttps?\b",
    re.I,
)
"""Matches every text whose words can show a secret: a cheap test before the words are read."""
_SCRIPT_OPTION = re.compile(r"-[A-Za-z]*c\Z|eval\Z")

_VALUE_NEXT: dict[str, frozenset[str]] = {
    "curl": frozenset({"-u", "--user", "-U", "--proxy-user", "--oauth2-bearer", "-b", "--cookie"}),
    "http": frozenset({"-a", "--auth"}),
    "https": frozenset({"-a", "--auth"}),
    "mongodump": frozenset({"-p"}),
    "mongorestore": frozenset({"-p"}),
    "az": frozenset({"-p"}),
    "twine": frozenset({"-p"}),
    "sqlcmd": frozenset({"-P"}),
    "bcp": frozenset({"-P"}),
    "smbclient": frozenset({"-U", "--user"}),
    "lftp": frozenset({"-u", "--user"}),
    "sshpass": frozenset({"-p"}),
    "redis-cli": frozenset({"-a"}),
    "docker": frozenset({"-p"}),
    "podman": frozenset({"-p"}),
    "mongo": frozenset({"-p"}),
    "mongosh": frozenset({"-p"}),
    "ldapsearch": frozenset({"-w"}),
    "ldapmodify": frozenset({"-w"}),
    "zip": frozenset({"-P"}),
    "unzip": frozenset({"-P"}),
    "openssl": frozenset({"-passin", "-passout", "-pass", "-k", "-K"}),
}
"""By program: options with a secret in the next word whose name does not tell so."""

_VALUE_ATTACHED: dict[str, str] = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "mariadb-dump", "sshpass", "7z", "7za"), "-p"),
    "redis-cli": "-a",
    "unzip": "-P",
    "curl": "-u",
}
"""By program: options with a secret in the same word."""

_BEHIND: dict[str, str] = {
    **dict.fromkeys(("curl", "http", "https"), ":"),
    "smbclient": "%",
    "lftp": ",",
}
"""By program: separator of a name and a secret in one word."""

_COOKIE_OPTIONS = frozenset({"-b", "--cookie"})

_LOGIN_ONLY = frozenset({"docker", "podman", "az"})
"""Programs whose option holds a secret only in the subcommand `login`."""


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """True if a variable, option or setting of this name usually holds a secret."""
    return _NAME.search(re.sub(r"[-.]", "_", name)) is not None


def masked(text: str) -> str:
    """Return a command line, or any other text, with its secrets masked."""
    # The patterns are linear, but not free: a command of megabytes would stall the caller.
    text, more = _examined(text)
    return _replaced(text, secret_spans(text)) + more


def masked_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of an argv with their secrets masked."""
    found = _Command()
    examined = (_examined(word) for word in words)
    return tuple(_replaced(word, _merged([*_anywhere(word), *found.next(word)])) + more for word, more in examined)


def masked_json(value: Any, name: str = "") -> Any:
    """Return a JSON value with its secrets masked: values whose name tells so, and secrets in any text."""
    match value:
        case str():
            # `$TOKEN` is not the secret, and the approver has to see which variable is used.
            return MASK if value and is_secret_name(name) and not _REFERENCE.match(value) else masked(value)
        case Mapping():
            return {key: masked_json(each, str(key)) for key, each in value.items()}
        case list() | tuple() if all(isinstance(each, str) for each in value):
            return list(masked_words(value))
        case list() | tuple():
            return [masked_json(each, name) for each in value]
        case _:
            return value


def secret_spans(text: str) -> tuple[Span, ...]:
    """Find the secrets in a shell line: spans in characters, end exclusive, ordered and disjoint."""
    return _merged([*_anywhere(text), *_in_words(text)])


def _examined(text: str) -> tuple[str, str]:
    """Return the part of a text that is searched, up to a blank, and the mark for the rest, which is not shown."""
    if len(text) <= MOST_EXAMINED:
        return text, ""
    begun = text[:MOST_EXAMINED]
    # Cutting inside a word could show the first half of a secret.
    kept = begun.rpartition(" ")[0] or begun
    return kept, f" ⟨{len(text) - len(kept):,} more characters⟩"


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], MASK]
        at = end
    return "".join((*parts, text[at:]))


def _merged(spans: list[Span]) -> tuple[Span, ...]:
    found: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        # Several patterns often find the same secret.
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def _anywhere(text: str) -> Iterator[Span]:
    """Yield the secrets that their shape, or the text right before them, tells."""
    for match in _SHAPES.finditer(text):
        yield match.span()
    yield from _tokens(text)
    for match in _HEADER.finditer(text):
        yield from _unless_reference(text, match.span(match.lastgroup or 0))
    for match in _IN_URL.finditer(text):
        yield from _unless_reference(text, match.span("secret"))
    for pattern in _IN_CONTEXT:
        for match in pattern.finditer(text):
            yield from _unless_reference(text, match.span("secret"))
    for pattern in (_SETTING, _IN_OBJECT, _IN_LIST, _IN_YAML):
        for match in pattern.finditer(text):
            if is_secret_name(match["name"]):
                yield from _unless_reference(text, match.span("secret"))


def _tokens(text: str) -> Iterator[Span]:
    """Yield the tokens whose shape is well known."""
    by_keyword, small = _shapes_by_keyword(), text.lower()
    patterns = [pattern for keyword in by_keyword if keyword in small for pattern in by_keyword[keyword]]
    for pattern in dict.fromkeys(patterns):
        shape = _compiled(pattern)
        for match in shape.finditer(text):
            yield match.span(shape.groups)


@cache
def _shapes_by_keyword() -> dict[str, list[str]]:
    # Loaded with the first text, and each shape compiled with the first text that may hold it: together that takes
    # as long as all else that a light command does.
    from whisper_tui.model.token_shapes import SHAPES

    found: dict[str, list[str]] = {}
    for _, keywords, pattern in SHAPES:
        for keyword in keywords:
            found.setdefault(keyword, []).append(pattern)
    return found


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # Only ASCII: without case, `K` would also be the sign of Kelvin.
    return re.compile(pattern, re.ASCII)


def _unless_reference(text: str, span: Span) -> Iterator[Span]:
    if not _REFERENCE.match(text, span[0]):
        yield span


def _in_words(text: str) -> Iterator[Span]:
    """Yield the secrets that the words before them in the same command tell."""
    if not _HINT.search(text):
        return
    found, last = _Command(), 0
    for match in _SHELL_WORD.finditer(text):
        # After `;`, `|` or `&` another program begins, whose options mean something else.
        if _ENDS_COMMAND & set(text[last : match.start()]):
            found = _Command()
        word, last = match.group(), match.end()
        # Asked before `next`, which makes this word the previous one.
        script = found.takes_script
        for start, end in found.next(word):
            yield from _unless_reference(text, (match.start() + start, match.start() + end))
        if script and word[:1] in {"'", '"'}:
            for start, end in _in_words(word[1:-1]):
                yield match.start() + 1 + start, match.start() + 1 + end


class _Command:
    """Reads the words of one command in order, and finds its secrets."""

    def __init__(self) -> None:
        self._program = ""
        self._plain: set[str] = set()
        self._before = ""

    @property
    def takes_script(self) -> bool:
        """True if the next word is a text for a shell, whose own words count."""
        return _SCRIPT_OPTION.match(self._before) is not None

    def next(self, word: str) -> list[Span]:
        """Yield the spans of the secrets in the next word."""
        bare = word.strip("'\"")
        spans = self._value(word) or self._attached(word) or self._operand(word) or self._named(word)
        if not self._program and "=" not in word:
            self._program = bare.rpartition("/")[2]
        self._plain.add(bare)
        self._before = bare
        return spans

    def _named(self, word: str) -> list[Span]:
        """`NAME=value` as one word, blanks in quotes included; a script's ends are its own words'."""
        match = None if self.takes_script else _NAMED_WORD.match(word)
        if match is None or not is_secret_name(match["name"]):
            return []
        closed = word[:1] in {"'", '"'} and len(word) > 1 and word[-1] == word[0]
        return [(match.end(), len(word) - closed)]

    def _value(self, word: str) -> list[Span]:
        """A whole word behind an option, or behind the name of a setting."""
        before, named = self._before, is_secret_name(self._before.lstrip("-"))
        if before.startswith("--") and named and "=" not in before:
            return [] if word.startswith("--") else [(0, len(word))]
        if named and not before.startswith("-") and self._plain & {"set", "config"} and not word.startswith("-"):
            return [(0, len(word))]
        if re.fullmatch(r"-(?:password|passwd|pass|token|secret|apikey)", before, re.I):
            return [(0, len(word))]
        if before in _VALUE_NEXT.get(self._program, ()) and self._means_secret():
            return self._behind_name(word, 0)
        return []

    def _attached(self, word: str) -> list[Span]:
        option = _VALUE_ATTACHED.get(self._program)
        if option is None or not word.startswith(option) or len(word) == len(option):
            return []
        return self._behind_name(word, len(option))

    def _operand(self, word: str) -> list[Span]:
        """Secrets that show by their place, or by the name of the whole command."""
        plain, options = self._plain, {one for one in self._plain if one.startswith("-")}
        match self._program:
            case "htpasswd" if any("b" in one[1:] and not one.startswith("--") for one in options):
                # The file and the name come before it.
                whole = len(plain - options) >= 3 and not word.startswith("-")
            case "nmcli":
                whole = self._before == "password"
            case "cargo" | "vault":
                whole = self._before == "login" and not word.startswith("-") and "=" not in word
            case "poetry":
                credentials = any(one.startswith(("pypi-token.", "http-basic.")) for one in plain)
                whole = credentials and (self._before.startswith("pypi-token.") or len(plain) >= 4)
            case "kubectl" | "oc" if "secret" in plain:
                literal = re.match(r"[\"']?(?:--from-literal=)?[\w.-]+=", word)
                names = word.startswith("--from-literal=") or self._before == "--from-literal"
                return [(literal.end(), len(word))] if literal and names else []
            case "curl" if word.startswith(("--user=", "--cookie=", "--proxy-user=")):
                return self._behind_name(word, word.index("=") + 1)
            case _:
                whole = False
        return [(0, len(word))] if whole else []

    def _means_secret(self) -> bool:
        return self._program not in _LOGIN_ONLY or "login" in self._plain

    def _behind_name(self, word: str, start: int) -> list[Span]:
        """Some programs want a name before the secret, and others want none."""
        sign = _BEHIND.get(self._program)
        if self._before in _COOKIE_OPTIONS or word.startswith("--cookie="):
            sign = "="  # Without it, the word is the name of a file of cookies.
        if sign is None or self._before == "--oauth2-bearer":
            return [(start, len(word))]
        at = word.find(sign, start)
        closed = word[-1:] in {"'", '"'}
        return [(at + 1, len(word) - closed)] if at >= 0 else []
