"""Which settings of a git repository run nothing by themselves, and what is set for a git that only looks."""

import re

_HARMLESS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|"
    r"safecrlf|eol|compression|quotepath|sharedrepository|abbrev|longpaths|whitespace|commitgraph|multipackindex)|"
    r"remote\.[^=]*\.(?:fetch|url|pushurl|mirror|tagopt|prune)|branch\.[^=]*\.(?:remote|merge|rebase|description|pushremote)|"
    r"user\.(?:name|email)|init\.defaultbranch|pull\.rebase|push\.(?:default|autosetupremote)|fetch\.prune|"
    r"submodule\.[^=]*\.(?:url|active|branch|update)|gc\.auto|color\.\w+|extensions\.objectformat|"
    r"lfs\.repositoryformatversion|advice\.\w+|log\.(?:date|decorate|abbrevcommit|follow|showroot|mailmap)|merge\.(?:conflictstyle|ff)|rerere\.\w+"
)
"""Settings that only say what something is called or how it is shown. `url` may not be a command, see below."""

_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)\Z')
_SETTING = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?\Z")

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "submodule.recurse": "false",
}

NO_PAGER = {
    "PAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "AWS_PAGER": "cat",
    "BAT_PAGER": "cat",
    "BAT_PAGING": "never",
}
"""In a terminal, a pager would start programs at the press of a key."""

NEUTRAL = {
    "GIT_CONFIG_GLOBAL": "/dev/null",  # a user's external diff cannot be turned off by a setting, only left out
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{at}": name for at, name in enumerate(_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{at}": value for at, value in enumerate(_SETTINGS.values())},
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    **NO_PAGER,
}
"""Added for a command that only looks and that nobody was asked about: neither git nor a pager starts anything else."""


def configuration_is_neutral(text: str) -> bool:
    """Whether every setting of a configuration is one that runs nothing. What is not understood is not neutral."""
    section = ""
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if bare.endswith("\\"):
            return False
        if bare.startswith("["):
            match = _SECTION.match(bare)
            if match is None or match[3]:
                return False
            section = match[1].lower() + ("." + match[2] if match[2] is not None else "")
            continue
        match = _SETTING.match(bare)
        if match is None or not section or not _is_harmless(f"{section}.{match[1].lower()}", match[2] or ""):
            return False
    return True


def _is_harmless(name: str, value: str) -> bool:
    return _HARMLESS.fullmatch(name) is not None and "::" not in value and not value.startswith(("!", "-"))
