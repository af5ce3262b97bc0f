"""jq filters made of nothing but paths, operators and functions that only see the values they are given.

jq can neither run nor write anything, but its modules read any file, and it knows its environment. Both need words or
signs that are not accepted here, neither as they are nor in a string that is evaluated.
"""

import re

_FUNCTIONS = frozenset(
    "length utf8bytelength not keys keys_unsorted values nulls booleans numbers strings arrays objects scalars "
    "has in map map_values path del to_entries from_entries with_entries select empty error add any all flatten range "
    "floor ceil round sqrt pow log tostring tonumber tojson fromjson type infinite nan isnan sort sort_by group_by min "
    "max min_by max_by unique unique_by reverse contains inside startswith endswith combinations ltrimstr rtrimstr "
    "trim ltrim rtrim explode implode split join ascii_downcase ascii_upcase recurse transpose first last nth until "
    "limit index rindex indices test match capture scan sub gsub ascii todate fromdate now abs toarray paths "
    "walk if then elif else end and or try catch true false null reduce foreach as".split()
)
_TOKEN = re.compile(
    r"""[ \t\n]+
    |\.\.|\.[A-Za-z_][A-Za-z0-9_]*|\.
    |"(?:[^"\\]|\\["\\/bfnrt])*"
    |[0-9]+(?:\.[0-9]+)?
    |@(?:csv|tsv|json|text|base64|base64d|html|uri|sh)\b(?![ \t\n]*")
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_:]*::)
    |//=?|\?//|[=!<>]=|[|,:;?()\[\]{}<>+*/%=-]""",
    re.VERBOSE,
)
_NEVER = frozenset("env input inputs input_filename import include def modulemeta debug stderr".split())


def jq_reaches_further(script: str) -> bool:
    """Whether a filter could show more than its input. Not understood counts as yes."""
    at, opened, last = 0, "", ""
    while at < len(script):
        match = _TOKEN.match(script, at)
        if match is None:
            return True
        at, text, name = match.end(), match[0], match["name"]
        is_key = opened.endswith("{") and last in {"{", ","}
        if name is not None and (name in _NEVER or not (is_key or name in _FUNCTIONS)):
            return True
        if text in {"(", "[", "{"}:
            opened += text
        elif text in {")", "]", "}"}:
            opened = opened[:-1]
        last = last if text.isspace() else text
    return False
