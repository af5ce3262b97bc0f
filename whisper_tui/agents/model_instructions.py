"""The texts that models are told at the start of a session. Standard library only: the relay of MCP imports it."""

INSTRUCTIONS = """\
These tools run commands on the user's machine under whisper_tui, where a human watches every command.
- A human may be asked before a command runs. The answer can take minutes: wait for it, and do not send the call again.
- An answer with the status `pending_approval`, `approved` or `running` is not a result: it holds a `ticket`. Call \
`wait` with that ticket until the result is there. `pending_approval` means that nothing ran and nothing was refused.
- A command of your own shell may be held for the human in the same way: if it, or a script that runs it, goes on \
without output, wait for it; do not end it or try another way.
- A denied call fails and says why in the human's own words. Nothing ran. Follow the words; do not try another way to \
do what was denied.
- The human may change a command before it runs. Then the answer says what ran instead.
- Give `run_shell_command` a `description`: the human reads it.
- `ExecCommand` answers when the command ends, or at the end of its foreground window; then the command goes on as a \
task, which `TaskOutput`, `TaskStatus`, `TaskInput` and `TaskStop` are about.
- Each call is independent; `cd` and variables do not last. `timeout` counts from the start of the command, not while \
the human thinks."""
"""The instructions for agents, which they are given when they connect to the MCP server."""

THERE_INSTRUCTIONS = "\n".join(
    line for line in INSTRUCTIONS.replace("the user's", "this").splitlines() if "`ExecCommand`" not in line
)
"""The instructions for agents at a place, which are offered fewer tools."""

OWN_SHELL_INSTRUCTIONS = (
    "whisper_tui may hold a shell command or another tool call that you make until a human has decided about it. "
    "That can take minutes: wait, and repeat a call only if its answer says so. "
    "A denied call fails with the human's reason, and nothing was done: follow it, try no other way. "
    "If the human changes a call, you are told what was done instead; else it ran as sent."
)
"""Told once to a model whose own shell is supervised: by our MCP server, or else by a hook (decision 20)."""

WORK_RUNS = (
    "Commands that only read, and commands that change only files of this workspace, run at once and without network; "
    "what reaches further waits for the human. Prefer such commands, and keep what reaches further in calls of its own."
)
"""Told besides where ordinary work runs unasked (decision 36), at a cost of about 45 tokens a session."""
