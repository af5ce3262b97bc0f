"""`python scripts/look_alikes.py DIRECTORY`: write which letters imitate ASCII, and which sequences are emoji.

DIRECTORY holds files of Unicode: `confusables.txt` of UTS #39, and `emoji-sequences.txt`,
`emoji-variation-sequences.txt` and `emoji-zwj-sequences.txt` of UTS #51.
"""

import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

TARGET = Path(__file__).parent.parent / "whisper_tui" / "policy" / "risks" / "look_alikes.py"
IMITATED = re.compile(r"[A-Za-z0-9/\\|;&$<>`]")
"""The characters of ASCII that count: quotes, dashes and dots have others in their place in ordinary text."""
_LIVING = range(0xA0, 0x250)
"""Letters of the alphabets of living languages, such as the dotless i of Turkish: they are in words beside ASCII."""
_TONES = range(0x1F3FB, 0x1F400)
_STYLE = 0xFE0F


def rows(path: Path) -> Iterator[list[str]]:
    """Yield the fields of each line of a file of Unicode."""
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        fields = [field.strip() for field in line.partition("#")[0].split(";")]
        if fields[0]:
            yield fields


def points(text: str) -> tuple[int, ...]:
    """Return the code points of a field."""
    first, dots, last = text.partition("..")
    return tuple(range(int(first, 16), int(last, 16) + 1)) if dots else tuple(int(word, 16) for word in text.split())


def _beside_ascii(character: str) -> bool:
    """True if a letter often stands in one word with ASCII in ordinary text, which it does not imitate there."""
    # One that is twice as wide, or is written from the right, is seen. Letters of full width imitate on purpose.
    wide = unicodedata.east_asian_width(character) == "W"
    return wide or unicodedata.bidirectional(character) in {"R", "AL", "AN"}


def version(path: Path) -> str:
    """Return the version that a file names, and its date."""
    head = path.read_text(encoding="utf-8-sig")[:1500]
    number = re.search(r"Version:? (\d+\.\d+(?:\.\d+)?)", head)
    date = re.search(r"Date: (\S+),", head)
    assert number is not None and date is not None
    return f"{path.name} {number[1]} of {date[1]}"


def in_ranges(found: Iterable[int]) -> str:
    """Return code points as a text of ranges."""
    parts: list[list[int]] = []
    for point in sorted(set(found)):
        if parts and point == parts[-1][1] + 1:
            parts[-1][1] = point
        else:
            parts.append([point, point])
    return " ".join(f"{first:X}" if first == last else f"{first:X}-{last:X}" for first, last in parts)


def wrapped(name: str, text: str, meaning: str) -> list[str]:
    """Return the lines of one constant."""
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 105:
            lines.append(line)
            line = ""
        line += f"{word} "
    lines.append(line.rstrip())
    return [f"{name} = (", *(f'    "{each}"' for each in lines), ")", f'"""{meaning}"""']


def main(folder: Path) -> None:
    """Write the module."""
    names = ("confusables", "emoji-sequences", "emoji-variation-sequences", "emoji-zwj-sequences")
    confusables, sequences, variations, joined = (folder / f"{name}.txt" for name in names)
    letters = [
        source[0]
        for source, target in ((points(fields[0]), points(fields[1])) for fields in rows(confusables))
        if len(source) == len(target) == 1 and IMITATED.fullmatch(chr(target[0]))
        if source[0] > 0x7F and source[0] not in _LIVING and not _beside_ascii(chr(source[0]))
    ]
    styled = [points(fields[0])[0] for fields in rows(variations) if fields[1] == "emoji style"]
    toned = [points(fields[0])[0] for fields in rows(sequences) if fields[1] == "RGI_Emoji_Modifier_Sequence"]
    flags = [points(fields[0]) for fields in rows(sequences) if fields[1] == "RGI_Emoji_Flag_Sequence"]
    plain = {
        tuple(point for point in points(fields[0]) if point != _STYLE and point not in _TONES)
        for fields in rows(joined)
    }
    lines = [
        '"""Characters that imitate ASCII, and sequences of emoji. Made by scripts/look_alikes.py: run it again.',
        "",
        "From data files of Unicode, https://www.unicode.org/Public, of which this is a part in another form:",
        *(f"{version(path)}," for path in (confusables, sequences, variations)),
        f"{version(joined)}.",
        "Copyright © 1991-2025 Unicode, Inc. Unicode license: see NOTICE.",
        '"""',
        "",
        *wrapped("LETTERS", in_ranges(letters), "Code points that look like a letter, a digit or a sign of a shell."),
        *wrapped(
            "STYLED", in_ranges(each for each in styled if each > 0x7F), "Code points that U+FE0F makes an emoji."
        ),
        *wrapped("TONED", in_ranges(toned), "Emoji that take a colour of skin."),
        *wrapped(
            "FLAGS", " ".join(sorted("".join(chr(each - 0x1F1E6 + 65) for each in two) for two in flags)), "Flags."
        ),
        *wrapped(
            "JOINED",
            " ".join("+".join(f"{point:X}" for point in each) for each in sorted(plain)),
            "Emoji that are joined by U+200D, without colours of skin and U+FE0F.",
        ),
    ]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)], check=True)
    sys.stdout.write(f"{len(set(letters))} letters and {len(plain)} joined emoji are in {TARGET}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
