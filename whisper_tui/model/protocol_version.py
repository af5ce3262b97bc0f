"""The lines at the socket of the supervisor: their limit, and their version: one number, whatever they are about."""

VERSION = 2
"""The newest version that this program speaks."""

OLDEST = 1
"""The oldest version that it still speaks."""

HELLO_VERSIONS = {"mcp": 1, "hook": 1, "exec": 1, "gate": 1, "call": 2, "executor": 1}
"""The version in which the lines of an operation last changed, which is what its program says in its hello.

Hooks and relays are started from the installed version while the supervisor of the version before still runs: that
supervisor refuses every number that it does not know, so none of them says a higher one than it needs.
"""

LONGEST_REQUEST = 16 * 1024 * 1024
"""The longest line in bytes that a client may send."""
