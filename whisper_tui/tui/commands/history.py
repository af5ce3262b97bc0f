"""The commands of the history: what is looked for, how output is played, what is done with a call of the past."""

from whisper_tui.tui.commands.command import Command

HISTORY: tuple[Command, ...] = (
    Command("history-search", "slash", "Search", "Look for words in all calls ever.", "History", in_footer=True),
    Command("history-verdict", "v", "Verdict", "Only calls that were allowed, asked or refused.", "History"),
    Command("history-ending", "x", "Ending", "Only calls that ended with 0, failed, were denied …", "History"),
    Command("history-decider", "w", "Decided by", "Only calls that a human, a rule or memory decided.", "History"),
    Command("history-period", "t", "Time", "Only calls of the last hour, day, week, month, or earlier.", "History"),
    Command("history-session", "s", "Session", "Only calls of the selected call's session.", "History"),
    Command("history-clear", "c", "All", "Look for all calls again.", "History", in_footer=True),
    Command("history-reload", "n", "Newest", "Look again from the newest call on.", "History"),
    Command("history-play", "space", "Play", "Play the recorded output in time, or pause.", "History"),
    Command("history-faster", "plus,equals_sign", "Faster", "Play faster.", "History"),
    Command("history-slower", "minus", "Slower", "Play slower.", "History"),
    Command("history-back", "left_square_bracket", "Back", "Go five seconds back in the output.", "History"),
    Command("history-ahead", "right_square_bracket", "Ahead", "Go five seconds on in the output.", "History"),
    Command("history-begin", "0", "Beginning", "Show the output as it began.", "History"),
    Command("history-finish", "9", "All output", "Show all of the output.", "History"),
    Command("history-layout", "o", "Output", "Show both streams, only stdout, or only stderr.", "History"),
    Command("history-again", "r", "Run again", "Ask for it once more, through the policy.", "History", in_footer=True),
    Command("history-reveal", "M", "Secrets", "Show the secrets of the call for ten seconds, or hide them.", "History"),
    Command("history-figures", "i", "Figures", "What its session comes to, in figures.", "History", in_footer=True),
    Command(
        "history-export", "E", "Export", "Write it, its session or everything to a file.", "History", in_footer=True
    ),
    Command("history-help", "question_mark", "Help", "Show what every key does.", "History"),
    Command("history-leave", "escape,q,H", "Back", "Go back to the cockpit.", "History", in_footer=True),
)
