"""Everything that can be asked of a supervisor: what decides, with what an intruder would say, and what only looks."""

from typing import Any

BY = {"surface": "cockpit", "who": "the human"}
RULE = {"effect": "allow", "definition": {"name": "x", "anything": True}}
REQUEST = {
    "session_id": "s1",
    "tool": "execute_command",
    "arguments": {},
    "description": "",
    "spec": {"command": {"kind": "argv", "program": "true"}, "cwd": "/"},
}


def deciding(call_id: str, session_id: str, seen: str) -> dict[str, dict[str, Any]]:
    """Requests that decide about a call, or act for those who brought it, by the operation."""
    call = {"call_id": call_id}
    ticket = {**call, "ticket": "0" * 32}
    return {
        "open_session": {"hello": {"name": "intruder", "root": "/", "resume": session_id}},
        "describe_session": {"session_id": session_id, "client": {"name": "x", "version": "1"}},
        "say": {"session_id": session_id, "text": "Approve it.", "by": BY},
        "submit": {"request": {**REQUEST, "session_id": session_id}},
        "claim": {**ticket, "claim": {"by": "intruder"}},
        "hand_over": ticket,
        "begin_function": call,
        "submit_and_begin": {"request": {**REQUEST, "session_id": session_id}},
        "end_function": call,
        "withdraw": {**call, "why": "x"},
        "leave": {**call, "why": "x"},
        "decide": {**call, "decision": {"kind": "approve"}, "by": BY, "seen": seen},
        "effects": call,
        "file_versions": call,
        "revert_edit": {**call, "by": BY},
        "preview": {**call, "by": BY},
        "drop_preview": {**call, "by": BY},
        "preview_page": call,
        "preview_versions": {**call, "number": 0},
        "undo": {**call, "paths": [], "direction": "undo", "by": BY},
        "undo_calls": {"order": {"call_ids": [call["call_id"]], "direction": "undo"}, "by": BY},
        "drafts": {},
        "start_draft": {"session_id": session_id, "by": BY},
        "draft_page": {"session_id": session_id},
        "draft_versions": {"session_id": session_id, "number": 0},
        "apply_draft": {"order": {"session_id": session_id}, "by": BY},
        "drop_draft": {"session_id": session_id, "by": BY},
        "set_unasked": {"session_id": session_id, "level": "workspace", "by": BY},
        "connect_place": {"place_name": "gpu1", "by": BY, "connected": False},
        "mark_reviewed": {"until": 1.0, "by": BY},
        "set_aside": {**call, "by": BY},
        "withdraw_yes": {**call, "by": BY},
        "start_anyway": {**call, "by": BY},
        "signal": {**call, "number": 9, "target": "tree", "by": BY},
        "pause": {"by": BY},
        "resume": {"by": BY},
        "write_stdin": {**call, "data": "eQo="},
        "resize": {**call, "rows": 10, "columns": 10},
        "revoke": {"grant_id": "g1", "by": BY},
        "deny_for_session": {"session_id": session_id, "words": ["rm"], "reason": "x", "by": BY},
        "lift_denial": {"denial_id": "d1", "by": BY},
        "add_rule": {**RULE, "by": BY},
        "replace_rule": {"old": RULE, "new": None, "by": BY},
        "try_rule": {"draft": RULE},
        "remove_rule": {"name": "x", "by": BY},
        "trust_project": {"root": "/", "by": BY, "trusted": True},
        "trust_rules": {"path": "rules.toml", "by": BY, "digest": ""},
        "settings": {},
        "change_setting": {"name": "cockpit.undo", "value": "none", "seen": "every", "by": BY},
        "prune": {},
        "report_presence": {"presence": {"cockpit": "intruder", "present": True, "muted": True}},
        "close_session": {"session_id": session_id, "why": "x"},
        "shutdown": {"end_runs": True},
        "phone_pairing_open": {"origin": "https://box.example.ts.net"},
        "phone_pairing": {},
        "phone_confirm": {"device_id": "p1", "by": BY, "add": True},
        "phone_devices": {},
        "phone_revoke": {"name": "pixel", "by": BY},
    }


LOOKING = frozenset(
    {
        "session",
        "decided",
        "started",
        "outcome",
        "watch",
        "watch_board",
        "read_output",
        "output_file",
        "read_timeline",
        "terminal_sizes",
        "usage",
        "stalls",
        "echo",
        "record",
        "history",
        "grants",
        "denials",
        "would_cover",
        "rule_files",
        "rule_list",
        "judge_command",
        "status",
        "rows",
        "open_calls",
        "open_rows",
    }
)
"""Operations that change nothing, which everybody of the user's may ask for."""
