"""Properties that the package keeps, and the longest way that a reader follows for one call or one key.

Nothing here counts lines or modules: a file is as long as its subject. A reader's way may become longer only with a
reason in a decision record.
"""

BOUNDS: dict[str, float] = {
    "import cycles, with those for types": 0,
    "modules in the largest import cycle": 0,
    "file names that occur twice": 0,
    "class names that occur twice": 0,
    "docstrings that begin with What, Whether, Who, Which": 0,
    "decision records that no code cites": 0,
    "files that an approved call passes in the supervisor": 73,
    "files with its MCP connection and `whisper-tui approve`": 104,
    "files from the key `a` to the supervisor": 14,
}
