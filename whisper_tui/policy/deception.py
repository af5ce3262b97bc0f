"""Findings about text that is made, or happens, to be read as something else than it is."""

import re
import unicodedata

from whisper_tui.model.text import visible
from whisper_tui.model.verdict import Risk
from whisper_tui.policy.inner import Inner
from whisper_tui.policy.question import Question
from whisper_tui.policy.view import View

_WORD = re.compile(r"[^\s'\"/;&|()<>=,:]+")
_PADDING = re.compile(r"[^\S\n]{40,}(?=\S)|\n{8,}(?=\S)")
_SOOTHING = re.compile(
    r"\b(?:safe(?:ly)?|harmless|only|just|dry.?run|read.?only|test(?:ing)?|check(?:ing)?|nothing|no changes?)\b", re.I
)
_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "FULLWIDTH", "MATHEMATICAL")
_TELLING: dict[str, re.Pattern[str]] = {
    "destructive": re.compile(
        r"delet|remov|clean|clear|drop|destroy|wip|eras|purg|prun|reset|discard|revert|undo|overwrit|forc|kill|stop|shut|"
        r"uninstall|terminat|publish|rebas|rm\b|trunc|format|unlink|restor|checkout|switch|kasser|löschen|supprim",
        re.I,
    ),
    "privilege": re.compile(r"sudo|root|permission|right|privileg|admin|chmod|own", re.I),
}


def deceptions(question: Question, seen: View) -> tuple[Risk, ...]:
    """All findings of this kind."""
    return (
        *_look_alikes(seen.text),
        *_hidden_tail(seen.text),
        *_soothing_words(seen),
        *_silent_description(question, seen),
        *_empty_variables(question, seen),
    )


def _look_alikes(text: str) -> tuple[Risk, ...]:
    if text.isascii():
        return ()
    for match in _WORD.finditer(text):
        word = match[0]
        if word.isascii() or not any(character.isascii() and character.isalpha() for character in word):
            continue
        odd = next((character for character in word if _imitates(character)), None)
        if odd is not None:
            name = unicodedata.name(odd, "unknown").lower()
            sentence = f"{visible(word)} holds a letter that only looks like a Latin one ({name})"
            return (Risk(id="look-alikes", sentence=sentence, span=match.span()),)
    return ()


def _imitates(character: str) -> bool:
    return not character.isascii() and unicodedata.name(character, "").startswith(_SCRIPTS)


def _hidden_tail(text: str) -> tuple[Risk, ...]:
    match = _PADDING.search(text)
    if match is None:
        return ()
    sentence = "A long stretch of nothing stands before the rest of it, which may be out of sight"
    return (Risk(id="hidden-tail", sentence=sentence, span=match.span()),)


def _soothing_words(seen: View) -> tuple[Risk, ...]:
    if not any(danger.id == "destructive" for _, danger in seen.dangers):
        return ()
    for command in seen.commands:
        said = " ".join(word or "" for word in command.argv[1:])
        if command.name in {"echo", "printf"} and _SOOTHING.search(said):
            sentence = "It says something reassuring beside something destructive"
            return (Risk(id="soothing-words", sentence=sentence, span=command.span),)
    comment = re.search(r"(?:^|\s)#[^\n]*", seen.text)
    if not seen.is_argv and comment and _SOOTHING.search(comment[0]):
        sentence = "A comment in it is reassuring about something destructive"
        return (Risk(id="soothing-words", sentence=sentence, span=comment.span()),)
    return ()


def _silent_description(question: Question, seen: View) -> tuple[Risk, ...]:
    if not question.description.strip():
        return ()
    for command, danger in seen.dangers:
        telling = _TELLING.get(danger.id)
        if telling is None or telling.search(question.description):
            continue
        if command.name is not None and command.name.lower() in question.description.lower():
            continue
        sentence = f"The agent's description does not mention what {visible(command.name or 'it')} does here"
        return (Risk(id="silent-description", sentence=sentence, span=_place(command, danger.word)),)
    return ()


def _empty_variables(question: Question, seen: View) -> tuple[Risk, ...]:
    """A path that starts with a variable, in a destructive command: where it is empty, the rest is all that is left."""
    outer = {id(command) for command, danger in seen.dangers if danger.id == "destructive"}
    if not outer or not seen.scripts:
        return ()
    for simple in seen.scripts[0].commands:
        if not any(id(command) in outer and command.span == simple.span for command in seen.commands):
            continue
        for word in simple.words[1:]:
            names = [piece.text for piece in word.pieces if piece.kind in {"variable", "expansion"}]
            if not names:
                continue
            known = question.resolved.variables
            empty = [name for name in names if not known.get(name, "")]
            if empty:
                shown = visible(", ".join(empty))
                sentence = f"{shown} may be empty, and then something else is destroyed than seems to be"
                return (Risk(id="empty-variable", sentence=sentence, span=(word.start, word.end)),)
    return ()


def _place(command: Inner, at: int) -> tuple[int, int]:
    return command.places[at] if at < len(command.places) else command.span
