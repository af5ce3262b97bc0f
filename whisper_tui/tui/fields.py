"""A label and what it says, as a paragraph."""

from whisper_tui.tui.spans import Line, Paragraph, Span

LABEL = 13
"""Columns of the labels."""


def labelled(label: str, value: Line, *, at_words: bool = True, decides: bool = False) -> Paragraph:
    """One line, or more where it is long: the label stands before the first."""
    return Paragraph(value, margin=(Span(f" {label:<{LABEL - 1}}", "label"),), at_words=at_words, decides=decides)
