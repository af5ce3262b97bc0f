"""What both ends of the socket must agree on before anything else. Standard library only."""

VERSION = 1
"""Of the lines on the wire and of the values in them: the newest that this program speaks."""

OLDEST = 1
"""The oldest that it still speaks."""

SOCKET = "supervisor.sock"
"""Name of the socket in the runtime directory."""

LONGEST_REQUEST = 16 * 1024 * 1024
"""Bytes of one line that a client may send."""

LONGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of one line that a client takes: enough for any page of history that was asked for."""
