"""A program that shows notifications, as a desktop has one: it writes each down, and clicks what a file says.

Arguments: the file of what was shown, the file of clicks, and the name on the bus, or nothing to have none. A line of
clicks is `ID KEY`, or `ID` to close a notification.
"""

import json
import sys
from pathlib import Path

from jeepney import DBusAddress, HeaderFields, MessageType, new_method_return, new_signal
from jeepney.bus_messages import message_bus
from jeepney.io.blocking import open_dbus_connection

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"


def main(shown: Path, clicks: Path, owns: bool) -> None:
    connection = open_dbus_connection()
    if owns:
        connection.send_and_get_reply(message_bus.RequestName(NAME, 0))
    shown.touch()
    last, clicked = 0, 0
    while True:
        lines = clicks.read_text().splitlines() if clicks.exists() else []
        for line in lines[clicked:]:
            id_, _, key = line.partition(" ")
            body = (int(id_), key) if key else (int(id_), 2)
            emitter = DBusAddress(PATH, interface=NAME)
            member = "ActionInvoked" if key else "NotificationClosed"
            connection.send(new_signal(emitter, member, "us" if key else "uu", body))
            note(shown, {"clicked": line})
        clicked = len(lines)
        try:
            message = connection.receive(timeout=0.02)
        except TimeoutError:
            continue
        if message.header.message_type is not MessageType.method_call:
            continue
        match message.header.fields[HeaderFields.member]:
            case "GetCapabilities":
                connection.send(new_method_return(message, "as", (["actions", "body", "body-markup"],)))
            case "Notify":
                _, replaces, _, title, text, actions, _, _ = message.body
                last = replaces or last + 1
                note(shown, {"id": last, "title": title, "body": text, "actions": actions[::2]})
                connection.send(new_method_return(message, "u", (last,)))
            case "CloseNotification":
                note(shown, {"closed": message.body[0]})
                connection.send(new_method_return(message))


def note(shown: Path, what: dict[str, object]) -> None:
    with shown.open("a") as file:
        file.write(json.dumps(what) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), owns=len(sys.argv) > 3)
