"""The words with which a program names files, without those that are text, such as delimiters, patterns and code."""

from whisper_tui.policy.commands.argv import Argv, program_name, reading_form, take_option
from whisper_tui.programs.entries import entry_of


def named_words(argv: Argv) -> Argv:
    """Return the arguments that may name files, the values of options among them: all that are not certainly text.

    Without this, `/` as a delimiter and a pattern that begins with a slash would be taken for directories.
    """
    words = argv[1:]
    name = program_name(argv[0]) if argv and argv[0] is not None else ""
    about, form = entry_of(name), reading_form(name)
    if form is None or not (about.text or about.text_operands) or None in words:
        return words
    known = [word or "" for word in words]
    found: list[str] = []
    operands: list[str] = []
    given: set[str] = set()
    at = 0
    while at < len(known):
        word = known[at]
        if word == "--" or (form.first and not word.startswith("-")):
            operands += known[at + (word == "--") :]
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            at += 1
            continue
        options: list[tuple[str, str | None]] = []
        taken = take_option(known, at, form, options)
        if taken == 0:
            return words
        given.update(option for option, _ in options)
        for option, value in options:
            # with POSIXLY_CORRECT, an option behind an operand is a file, and so is the word behind it
            is_text = option in about.text and (taken == 1 or not operands)
            if value is not None and not is_text:
                found.append(value)
        at += taken
    leading = 0 if about.text_instead & given else about.text_operands
    return (*found, *operands[leading:])
