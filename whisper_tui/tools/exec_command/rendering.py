"""The exact lines in which a model reads what became of an `ExecCommand`."""

from typing import Any

from whisper_tui.tools.exec_command.envelope import Envelope, render_failure


def render_for_model(envelope: Envelope) -> str:
    """The text of an envelope."""
    if envelope["status"] == "error":
        return render_failure(envelope)
    return render_result(envelope["result"])


def render_result(result: dict[str, Any]) -> str:
    """The text of a successful result."""
    match result["disposition"]:
        case "completed":
            return _completed(result)
        case "promoted_to_task":
            return _promoted(result)
        case _:
            return _already_running(result)


def _completed(result: dict[str, Any]) -> str:
    code = result["exit_status"]
    lines = ["Process exited" if code is None else f"Process exited with code {code}"]
    for name in ("stdout", "stderr"):
        if (text := result[f"{name}_preview"]) and text.strip():
            lines += ["", f"{name}:", text]
    if result.get("artifacts"):
        lines += ["", "Artifacts:", *(artifact["path"] for artifact in result["artifacts"])]
    return "\n".join(lines)


def _promoted(result: dict[str, Any]) -> str:
    text = result.get("initial_output_preview") or ""
    return "\n".join(
        (
            "Command promoted to background task",
            f"Task: {result['task_handle']['task_id']}",
            "",
            "Initial output:",
            text if text.strip() else "(none captured before promotion)",
        )
    )


def _already_running(result: dict[str, Any]) -> str:
    handle, command = result["task_handle"], result["command"]
    lines = [
        "Command is already running",
        f"Task: {handle['task_id']}",
        f"Status: {handle['status'].capitalize()}",
        f"Task summary: {result['summary']}",
    ]
    if command["cmd"].strip():
        lines.append(f"Command: {command['cmd']}")
    lines.append(f"workdir={command['workdir']}")
    if command["shell"] is not None:
        lines.append(f"shell={command['shell']}")
    return "\n".join((*lines, "", result["instructions"]))
