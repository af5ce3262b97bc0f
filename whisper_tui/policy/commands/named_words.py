"""The words with which a program names files, without those that are text, such as delimiters, patterns and code."""

from whisper_tui.policy.commands.argv import Argv, is_certain, program_name, reading_form
from whisper_tui.programs.entries import entry_of
from whisper_tui.programs.parsing import parse


def named_words(argv: Argv) -> Argv:
    """Return the arguments that may name files, the values of options among them: all that are not certainly text.

    Without this, `/` as a delimiter and a pattern that begins with a slash would be taken for directories.
    """
    words = argv[1:]
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    about, form = entry_of(name), reading_form(name)
    if form is None or not (about.text or about.text_operands) or None in words:
        return words
    found: list[str] = []
    operands: list[str] = []
    given: set[str] = set()
    for each in parse(words, form, 0):
        if each.kind == "operand":
            operands.append(each.given or "")
        elif each.kind != "dashes":
            if not is_certain(each):
                return words
            given.add(each.name)
            # with POSIXLY_CORRECT, an option behind an operand is a file, and so is the word behind it
            if not (each.name in about.text and (not each.takes_next or not operands)):
                found += filter(None, each.values)
    leading = 0 if about.text_instead & given else about.text_operands
    return (*found, *operands[leading:])
