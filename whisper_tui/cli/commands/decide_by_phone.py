"""`phone`: serves the page on which paired phones decide, pairs phones at the desk, lists and revokes them."""

import sys
import time
from typing import TYPE_CHECKING, Any

from whisper_tui.cli.commands.approve import decider
from whisper_tui.cli.output_format import print_json
from whisper_tui.cli.subcommand import (
    DONE,
    Options,
    Subcommands,
    complain,
    home_of,
    how_to_install,
    supervisor_of,
)
from whisper_tui.model.errors import InvalidRequest, Refused, Unavailable, WhisperError
from whisper_tui.model.text import visible
from whisper_tui.present.quantities import minute_from

if TYPE_CHECKING:
    from whisper_tui.system.state_directory import Directories
    from whisper_tui.wire.light_client import LightClient

PHONE_PORT = 8718
"""The port of the page, one above that of `serve`."""
WHITE_ON_BLACK, USUAL_COLOURS = "\x1b[38;5;231;48;5;16m", "\x1b[0m"
"""The colours of a code: its light parts are characters. Many cameras do not read it the other way round."""
LOOK_EVERY_S = 0.5
"""Seconds between two looks for the phone that is being paired."""

NAME_FIRST = (
    "A phone needs a fixed DNS name with https for this page: a passkey belongs to a name for its whole life, and an "
    "IP address is none."
)
WAYS = {
    "tailscale": (
        "1. Here, once:      tailscale serve --bg --https=443 http://127.0.0.1:{port}",
        "2. Its name is in:  tailscale serve status   (like https://box.tail1234.ts.net)",
        "3. Here:            whisper-tui phone --port {port} --origin https://box.tail1234.ts.net",
        "The phone must be in the same tailnet. Nobody else reads or reaches the page.",
    ),
    "ssh": (
        "1. On a laptop:     ssh -N -L {port}:127.0.0.1:{port} THIS-MACHINE",
        "2. Here:            whisper-tui phone --port {port} --origin http://localhost:{port}",
        "This reaches a laptop with a security key or a phone nearby as passkey, but not a phone's own browser.",
    ),
    "url": (
        "1. A reverse proxy with a name and a certificate of its own, in front of http://127.0.0.1:{port}:",
        "   caddy reverse-proxy --from box.example.com --to 127.0.0.1:{port}",
        "   cloudflared tunnel run --url http://127.0.0.1:{port} NAME   (it can read and change the page)",
        "2. Here:            whisper-tui phone --port {port} --origin https://box.example.com",
    ),
}
"""The exact lines for each way to reach the page."""


def add_phone(verbs: Subcommands) -> None:
    """Declare the subcommand."""
    parser = verbs.add(
        "phone",
        "decide on a paired phone; pair, list and revoke phones",
        _phone,
        details="Without an action it serves the page for phones on 127.0.0.1 until Ctrl-C. A phone needs a fixed DNS "
        "name with https that leads there: --via prints the lines for it. pair shows a code and asks here before the "
        "phone is added; it waits ten minutes before it may approve. confirm trusts a phone again after the supervisor "
        "was killed. It needs the extra `phone` of the package.",
    )
    parser.add_argument("action", nargs="?", choices=("pair", "list", "confirm", "revoke"), help="default: serve")
    parser.add_argument("name", nargs="?", metavar="NAME", help="of a phone, for confirm and revoke")
    parser.add_argument(
        "--port", type=int, default=PHONE_PORT, metavar="N", help=f"the port; 0: any (default: {PHONE_PORT})"
    )
    parser.add_argument(
        "--origin", metavar="URL", help="the address by which phones reach the page (default: origin in [phone])"
    )
    parser.add_argument("--via", choices=tuple(WAYS), help="print the lines that make the page reachable")
    parser.add_argument("--json", action="store_true", help="with list: print the phones as JSON")


def _phone(options: Options) -> int:
    if (options.name is None) == (options.action in {"confirm", "revoke"}):
        raise InvalidRequest(
            "this action names no phone" if options.name else f"{options.action} needs the name of a phone",
            hint="whisper-tui phone list shows them",
        )
    if not 0 <= options.port <= 65_535:
        raise InvalidRequest(f"there is no port {options.port}", hint="Name one from 1 to 65535, or 0 for any")
    if options.via is not None and options.origin is None:
        return _tell_way(options)
    match options.action:
        case "list":
            return _list(options)
        case "revoke":
            with supervisor_of(options) as supervisor:
                device = supervisor.ask("phone_revoke", name=options.name, by=decider())
            sys.stdout.write(f"Revoked {visible(device['name'])}: it can do nothing any more\n")
            return DONE
        case "confirm":
            return _confirm(options)
        case "pair":
            _check_extra()
            with supervisor_of(options) as supervisor:
                return _pair(supervisor, _origin(options, home_of(options)))
    _check_extra()
    return _serve(options, home_of(options))


def _tell_way(options: Options) -> int:
    port = options.port or PHONE_PORT
    sys.stdout.write("\n".join((NAME_FIRST, "", *(line.format(port=port) for line in WAYS[options.via]), "")))
    return DONE


def _check_extra() -> None:
    """Raise `Unavailable`, with the command that installs it, if the extra is missing."""
    from importlib.util import find_spec

    missing = [name for name in ("webauthn", "segno") if find_spec(name) is None]
    if missing:
        raise Unavailable(f"the module {missing[0]} is not installed", hint=how_to_install("phone"))


def _origin(options: Options, home: "Directories") -> str:
    """Return the address of the page. Raises `InvalidRequest`, with the ways to one, if it is not known."""
    from whisper_tui.config import load
    from whisper_tui.model.page_address import page_address

    given = options.origin or load(home).phone.origin
    if not given:
        hint = f"Run whisper-tui phone --via {', or --via '.join(WAYS)}. Then --origin URL, or origin in [phone]"
        raise InvalidRequest(f"the address of the page is not known. {NAME_FIRST.rstrip('.')}", hint=hint)
    return page_address(given).origin


def _list(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        devices = supervisor.ask("phone_devices")
    if options.json:
        print_json(devices)
        return DONE
    if not devices:
        sys.stdout.write("No phone is paired: whisper-tui phone pair\n")
    for device in devices:
        sys.stdout.write(f"{_line(device)}\n")
    return DONE


def _line(device: dict[str, Any]) -> str:
    facts = [_when("paired", device["paired_at"])]
    if device["revoked_at"] is not None:
        facts.append(_when("REVOKED", device["revoked_at"]))
    elif not device["confirmed"]:
        facts.append(f"only denies: the supervisor was killed, whisper-tui phone confirm {device['name']}")
    elif device["may_approve_from"] > time.time():
        facts.append(f"may approve from {minute_from(device['may_approve_from'])} on")
    facts.append(_when("last used", device["last_used"]) if device["last_used"] is not None else "never used")
    facts += ["woken by pushes"] if device["pushed"] else []
    facts.append("key synced by an account" if device["synced"] else "key bound to the phone")
    return visible(f"{device['name']}  {', '.join(facts)}, {device['origin']}, {' '.join(device['words'])}")


def _when(word: str, at: float) -> str:
    return f"{word} {time.strftime('%Y-%m-%d %H:%M', time.localtime(at))}"


def _confirm(options: Options) -> int:
    with supervisor_of(options) as supervisor:
        known = [each for each in supervisor.ask("phone_devices") if options.name in {each["name"], each["id"]}]
        if known:
            sys.stdout.write(f"{_line(known[-1])}\n")
        _ask_person("Is this phone yours, and shall it approve again?")
        device = supervisor.ask("phone_confirm", device_id=options.name, add=True, by=decider())
    sys.stdout.write(f"{visible(device['name'])} is confirmed\n")
    return DONE


def _ask_person(question: str) -> None:
    """Raise `Refused` unless a person at a terminal says yes."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("phones are paired at the desk, and there is no terminal to ask on", hint="Run it in a terminal")
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("nothing was changed")


def _pair(supervisor: "LightClient", origin: str) -> int:
    """Show a code, wait for a phone, and ask whether it is to be added."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Refused("phones are paired at the desk, and there is no terminal to ask on", hint="Run it in a terminal")
    pairing = supervisor.ask("phone_pairing_open", origin=origin)
    sys.stdout.write(f"Open this on the phone, within {pairing['expires_in_s'] / 60:.0f} minutes:\n\n")
    _draw_code(pairing["url"])
    sys.stdout.write(f"\n  {pairing['url']}\n\nThe code is {pairing['code']}. Waiting for the phone…\n")
    sys.stdout.flush()
    while (pairing := supervisor.ask("phone_pairing"))["state"] == "open":
        time.sleep(LOOK_EVERY_S)
    device = pairing["device"]
    if device is None:
        raise Refused(f"no phone was paired: {pairing['closed_because']}", hint="Run whisper-tui phone pair again")
    key = "is synced by an account to other devices" if device["synced"] else "stays on this phone"
    sys.stdout.write(
        f"\n  Name    {visible(device['name'])}\n  Key     {key}\n  Words   {' '.join(device['words'])}"
        "   (the phone shows the same)\n\n"
    )
    try:
        _ask_person("Add this phone?")
    except Refused:
        supervisor.ask("phone_confirm", device_id=device["id"], add=False, by=decider())
        raise
    device = supervisor.ask("phone_confirm", device_id=device["id"], add=True, by=decider())
    at = minute_from(device["may_approve_from"])
    sys.stdout.write(f"{visible(device['name'])} is paired. It may deny now, and approve from {at} on.\n")
    return DONE


def _draw_code(url: str) -> None:
    """Print the address as a QR code, dark on light whatever the colours of the terminal are."""
    from io import StringIO

    import segno

    drawn = StringIO()
    segno.make(url, error="m", micro=False).terminal(out=drawn, border=2, compact=True)
    for line in drawn.getvalue().splitlines():
        sys.stdout.write(f"{WHITE_ON_BLACK}{line}{USUAL_COLOURS}\n")


def _serve(options: Options, home: "Directories") -> int:
    """Serve the page until Ctrl-C; where no phone is paired yet, pair the first one meanwhile."""
    import asyncio
    from contextlib import suppress

    origin = _origin(options, home)
    with supervisor_of(options) as supervisor:
        is_first = not any(each["revoked_at"] is None for each in supervisor.ask("phone_devices"))

    def ready(port: int) -> None:
        sys.stdout.write(f"The page for phones is at http://127.0.0.1:{port}, and phones reach it by {origin}\n")
        sys.stdout.flush()
        if is_first and sys.stdin.isatty() and sys.stdout.isatty():
            _pair_meanwhile(options, origin)
        elif is_first:
            complain("no phone is paired yet: run whisper-tui phone pair in a terminal")

    with suppress(KeyboardInterrupt):
        asyncio.run(_served(home, origin, options.port, ready))
    return DONE


async def _served(home: "Directories", origin: str, port: int, ready: Any) -> None:
    from whisper_tui.transports.phone.phone_site import serve
    from whisper_tui.wire.phone_client import PhoneClient

    client = await PhoneClient.connect(home)
    try:
        await serve(client, origin=origin, port=port, ready=ready)
    finally:
        await client.close()


def _pair_meanwhile(options: Options, origin: str) -> None:
    """Pair a phone at this terminal, while the page is served."""
    import threading

    def pair() -> None:
        try:
            with supervisor_of(options) as supervisor:
                _pair(supervisor, origin)
        except WhisperError as error:
            complain(error.sentence())

    # A daemon: Ctrl-C ends the page, whatever the terminal is asked just then.
    threading.Thread(target=pair, name="pairing", daemon=True).start()
