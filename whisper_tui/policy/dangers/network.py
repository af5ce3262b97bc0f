"""What leaves this machine, and what comes from elsewhere onto its disk."""

from whisper_tui.policy.dangers.finding import Danger, Words, before_end_of_options, letters, long_option

NETWORK = frozenset(
    "curl wget ssh scp sftp rsync nc ncat netcat socat telnet ftp ping ping6 dig host nslookup whois traceroute "
    "tracepath mtr nmap http https httpie xh aria2c lynx w3m links rclone aws gcloud az gh glab doctl mail "
    "sendmail mutt smbclient rdesktop openssl nslookup drill kdig resolvectl getent".split()
)
"""Programs that talk to other machines."""

_QUIET = frozenset({"openssl", "getent", "resolvectl"})


def talks(argv: Words, name: str) -> bool:
    """Whether a command reaches other machines."""
    if name in _QUIET:
        return "s_client" in argv or "s_server" in argv or "hosts" in argv
    return name in NETWORK


def curl(argv: Words) -> list[Danger]:
    """curl: writing files, sending data, reading its options from a file."""
    valued = "AbcCdDeEFhHKmMoPQrtTuUwxXyYz"
    for index, word in before_end_of_options(argv):
        bundle = letters(word, valued)
        if set(bundle) & set("oOcDJ") or long_option(
            word, "output", "output-dir", "remote-name", "remote-name-all", "cookie-jar", "dump-header", "trace",
            "trace-ascii", "stderr", "libcurl", "etag-save", "hsts", "alt-svc",
        ):  # fmt: skip
            return [Danger("writes-file", f"{word} makes curl write a file", index)]
        if "K" in bundle or long_option(word, "config", "engine"):
            return [Danger("runs-other-code", f"{word} makes curl read its options from a file", index)]
        if set(bundle) & set("dFT") or long_option(
            word, "data", "data-binary", "data-raw", "data-urlencode", "data-ascii", "form", "form-string", "json",
            "upload-file",
        ):  # fmt: skip
            return [Danger("sends-data", f"{word} makes curl send data away", index)]
    return []


def wget(argv: Words) -> list[Danger]:
    """wget: writing where it is told, sending data, running or reading settings."""
    valued = "aBDeGhiIlNoOPQRAtTUwX"
    for index, word in before_end_of_options(argv):
        bundle = letters(word, valued)
        if set(bundle) & set("oOaP") or long_option(
            word, "output-document", "output-file", "append-output", "directory-prefix", "save-cookies", "warc-file",
            "hsts-file", "rejected-log",
        ):  # fmt: skip
            return [Danger("writes-file", f"{word} makes wget write a file", index)]
        if "e" in bundle or "i" in bundle or long_option(word, "execute", "use-askpass", "config", "input-file"):
            return [Danger("runs-other-code", f"{word} makes wget take orders from elsewhere", index)]
        if long_option(word, "post-data", "post-file", "body-data", "body-file"):
            return [Danger("sends-data", f"{word} makes wget send data away", index)]
    return []
