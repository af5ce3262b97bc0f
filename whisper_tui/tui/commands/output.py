"""The commands for what a run has written: how it is shown, what is found in it, where else it can go."""

from whisper_tui.tui.commands.command import Command

OUTPUT: tuple[Command, ...] = (
    Command(
        "search", "ctrl+f", "Find", "Find words in all of the output; it is counted while you go on.", "Output", "ran"
    ),
    Command(
        "next-match",
        "right_square_bracket",
        "Next match",
        "Go to the next match; after the last, to the first.",
        "Output",
        "ran",
    ),
    Command("previous-match", "left_square_bracket", "Match before", "Go to the match before.", "Output", "ran"),
    Command(
        "errors",
        "exclamation_mark",
        "Errors",
        "Go to the first line that looks like an error; ] goes on to the next.",
        "Output",
        "ran",
    ),
    Command("wrap", "w", "Wrap", "Break long lines into rows, or cut them off.", "Output", "ran"),
    Command("timestamps", "W", "Times", "Say when each line came, or do not.", "Output", "ran"),
    Command(
        "interleave", "z", "By time", "Show both streams as one text, by time, or each on its own.", "Output", "ran"
    ),
    Command("arrange", "vertical_line", "Arrange", "Put the streams side by side, or stack them.", "Output", "ran"),
    Command("bytes", "number_sign", "Bytes", "Show the output as bytes, or as text again.", "Output", "ran"),
    Command("copy", "c", "Copy", "Copy the rows of output that are on the screen, in full.", "Output", "ran"),
    Command("copy-command", "y", "Copy command", "Copy the command.", "Output", "call"),
    Command("save", "S", "Save", "Save the output, all of it, to a file.", "Output", "ran"),
    Command("pager", "v", "Pager", "Read the output in your pager, and come back when you leave it.", "Output", "ran"),
)
