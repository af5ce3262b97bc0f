"""Prints the page about keys."""

from whisper_tui.tui.commands.page import keys_page

print(keys_page(), end="")
