"""Commands that print keys, passwords or tokens: of clouds, clusters, containers, password managers and services."""

from whisper_tui.policy.commands.argv import Danger, Words
from whisper_tui.policy.commands.readings import read_words
from whisper_tui.policy.risks.call_patterns import find_calls
from whisper_tui.programs.entries import entry_of

_SAYS_ALREADY = ("name", "wide", "-oname", "-owide", "--output=name", "--output=wide")


def prints_secrets(argv: Words, name: str) -> list[Danger]:
    """Return the words that make a command print a key, a password or a token."""
    found = next(find_calls("prints_secrets", argv, name), None)
    if found is not None:
        return [Danger("reads-secrets", f"May show keys, passwords or tokens (`{found.shown}`)", found.at)]
    if entry_of(name).place == "a pod of the cluster":
        return _of_cluster(argv, name)
    if name == "aws":
        return _user_data(argv)
    if name == "pass" and len(argv) > 1:
        return _of_pass(argv)
    return []


def _of_cluster(argv: Words, name: str) -> list[Danger]:
    """`kubectl get secret -o yaml`: without an output format, only names are shown."""
    read = read_words(argv)
    gets = any(each.word in {"get", "edit"} for each in read)
    secret = next((each.at for each in read if _is_secret(each.word)), None)
    formatted = any(word is not None and word.startswith(("-o", "--output", "--template")) for word in argv)
    only_names = any(word in _SAYS_ALREADY for word in argv)
    if not gets or secret is None or not formatted or only_names:
        return []
    return [Danger("reads-secrets", f"Shows secrets of a cluster (`{name} get {argv[secret]}`)", secret)]


def _is_secret(word: str) -> bool:
    return any(kind.partition("/")[0].partition(".")[0] in {"secret", "secrets"} for kind in word.split(","))


def _user_data(argv: Words) -> list[Danger]:
    """`aws ec2 describe-… --attribute userData`: the script of a machine's first start often holds passwords."""
    return [
        Danger("reads-secrets", "Shows the user data of a machine, which often holds passwords (`aws userData`)", at)
        for at, word in enumerate(argv)
        if at and word is not None and "userdata" in word.lower().replace("-", "")
    ][:1]


_PASS = frozenset("init ls list find search grep insert add edit generate rm remove delete mv rename cp copy git help "
                  "version --version --help otp".split())  # fmt: skip


def _of_pass(argv: Words) -> list[Danger]:
    """`pass NAME` shows a password without a subcommand."""
    first = next(((each.at, each.word) for each in read_words(argv)), None)
    if first is None or first[1] in _PASS:
        return []
    return [Danger("reads-secrets", "Shows a password (`pass`)", first[0])]
