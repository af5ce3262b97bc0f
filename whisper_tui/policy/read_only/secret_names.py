"""Names of files that usually hold something that should not be shown: keys, passwords, tokens, histories."""

import re
from collections.abc import Sequence
from functools import lru_cache

_NAMES = (
    # environments and settings with passwords
    r"\.env(?:\.(?!example|sample|template|dist)[\w.-]+)?|\.envrc|[\w.-]+\.env|\.netrc|_netrc|\.pgpass|pgpass\.conf|"
    r"\.git-credentials|\.npmrc|\.pypirc|\.my\.cnf|\.mylogin\.cnf|\.htpasswd|\.s3cfg|\.boto|\.dockercfg|\.terraformrc|"
    r"\.vault-token|\.vault_pass(?:word)?(?:\.txt)?|\.?vault[_-]password(?:\.txt)?|\.rhosts|\.?rclone\.conf|"
    r"\.Xauthority|\.ICEauthority|http-token|"
    # accounts of the system
    r"shadow-?|gshadow-?|opasswd|sudoers|master\.passwd|krb5cc_\w+|[\w.-]+\.keytab|"
    # keys
    r"id_(?:rsa|dsa|ecdsa|ed25519)(?!\S*\.pub\Z)[\w.-]*|ssh_host_\w+_key|authorized_keys|[\w.-]*priv(?:ate)?[\w.-]*\.(?:pem|json)|"
    r"(?![\w.-]*(?:cert|chain|ca|pub|bundle|root))[\w.-]+\.pem|[\w.-]+\.(?:key|p8|p12|pfx|ppk|kdbx?|jks|keystore)|"
    r"secring\.gpg|master\.key|"
    # secrets of services
    r"\.?credentials(?:\.(?:json|toml|tfrc\.json|yml\.enc|db|xml|ini))?|auth\.json|token\.json|"
    r"[\w.-]*secrets?[\w.-]*\.(?:ya?ml|json|toml|txt|ini|properties|env|pem|key)|service[_-]?account[\w.-]*\.json|"
    r"[\w.-]*\.tfstate(?:\.[\w.-]+)?|[\w.-]+\.tfvars(?:\.json)?|kubeconfig[\w.-]*|[\w.-]+\.kubeconfig|"
    # what people have typed
    r"\.(?:bash|zsh|python|mysql|psql|sqlite|node_repl|irb|rediscli|sh)_?history"
)
_DIRECTORIES = (
    r"\.ssh|\.gnupg|\.aws|\.kube|\.docker|\.azure|\.config/gcloud|\.password-store|\.config/gh|\.config/glab-cli|"
    r"etc/ssl/private|etc/wireguard|etc/sudoers\.d|NetworkManager/system-connections|run/secrets|\.mozilla|\.thunderbird"
)
_OWN = r"whisper[_-]tui/(?:.*/)?(?:run|state|environments|journal[\w.-]*|[\w.-]*token[\w.-]*)(?:/|\Z)"

_SECRETS = re.compile(
    rf"(?:^|/)(?:{_NAMES})\Z|(?:^|/)(?:{_DIRECTORIES})(?:/|\Z)|(?:^|/){_OWN}|/environ\Z", re.IGNORECASE
)


@lru_cache(maxsize=4096)
def names_secret(word: str) -> bool:
    """Whether a word, or what an option or a commit in it is given, is the name of such a file."""
    attached = word[2:] if word.startswith("-") and not word.startswith("--") else ""
    parts = (word, word.rpartition("=")[2], word.rpartition(":")[2], attached)
    return any(part and _SECRETS.search(part.rstrip("*")) for part in parts)


_SHOWS_ENVIRONMENT = re.compile(
    r"[A-Za-z]*e[A-Za-z]*|-[A-Za-z]*e[A-Za-z]*[xuE][A-Za-z]*|-[A-Za-z]*[xuE][A-Za-z]*e[A-Za-z]*"
)
"""Words of ps that make it show the environment of processes."""


def shows_environment(argv: Sequence[str | None]) -> bool:
    """Whether a command prints variables of its own or of other processes."""
    name = (argv[0] or "").rsplit("/", 1)[-1] if argv else ""
    words = [word or "" for word in argv[1:]]
    if name == "printenv":
        return True
    if name == "env":  # with a command behind it, it only sets them
        return all(word.startswith("-") and not word.startswith(("-S", "--split")) for word in words)
    if name in {"export", "declare", "typeset", "readonly"}:
        return words in ([], ["-p"], ["-x"], ["-px"], ["-xp"])
    if name == "set":
        return not words
    return name == "ps" and any(_SHOWS_ENVIRONMENT.fullmatch(word) for word in words)
