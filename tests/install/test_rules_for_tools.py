"""The rules that clients have for edits, the web and servers: imported, and followed where they deny or ask."""

import json

from tests.rows import each_row
from whisper_tui.agents import claude, gemini, opencode
from whisper_tui.agents.own_rules import ImportedRules
from whisper_tui.policy.rules.rule import Rule


def settings(**permissions: list[str]) -> str:
    return json.dumps({"permissions": permissions})


def subjects(rules: tuple[Rule, ...]) -> list[str]:
    return [rule.subject() for rule in rules]


def test_permissions_of_claude_code_become_rules_for_files_hosts_and_tools() -> None:
    found = claude.rules_in(
        settings(
            deny=["Edit(secrets/**)", "WebFetch(domain:evil.org)", "mcp__github__delete_repo"],
            ask=["Write(~/notes/*.md)", "WebSearch", "mcp__slack"],
            allow=["Edit(docs/**)", "WebFetch(domain:docs.python.org)", "mcp__linear__list"],
        )
    )
    assert subjects(found.of("deny")) == [
        "edits of secrets/**",
        "fetches from evil.org",
        "anything of mcp__github__delete_repo",
    ]
    assert subjects(found.of("ask")) == ["edits of ~/notes/*.md", "anything of web", "anything of mcp__slack__*"]
    assert subjects(found.of("allow")) == [
        "edits of docs/**",
        "fetches from docs.python.org",
        "anything of mcp__linear__list",
    ]
    assert found.left == []


@each_row("entry", ["Edit", "Write(**)", "WebFetch", "WebFetch(domain:*)", "Task"])
def test_a_permission_that_would_allow_nearly_anything_is_not_imported(entry: str) -> None:
    found = claude.rules_in(settings(allow=[entry]))
    assert found.of("allow") == ()
    assert len(found.left) == 1


@each_row("entry", ["Read(.env)", "Edit(!x)", "WebFetch(domain:a b)", "mcp__whisper__wait", "Skill(x)"])
def test_a_permission_that_no_rule_can_express_is_named(entry: str) -> None:
    found = claude.rules_in(settings(deny=[entry]))
    assert (found.of("deny"), len(found.left), found.uncertain) == ((), 1, [])


def test_the_clients_own_denials_of_edits_hold_here_too() -> None:
    own = claude.own_rules_in(settings(deny=["Edit(secrets/**)"], ask=["WebFetch"], allow=["Edit(docs/**)"]))
    rules = own.rules("Claude Code", "settings.json")
    assert subjects(rules.deny) == ["edits of secrets/**"]
    assert subjects(rules.ask) == ["anything of web"]
    assert rules.read_only is None
    assert rules.deny[0].justification == "Claude Code denies this call itself (Edit(secrets/**) in settings.json)"


def test_policies_of_gemini_cli_name_edits_the_web_and_servers() -> None:
    text = """
    [[rule]]
    toolName = ["write_file", "replace"]
    decision = "deny"
    [[rule]]
    toolName = "web_fetch"
    decision = "ask_user"
    [[rule]]
    mcpName = "github"
    toolName = "delete_repo"
    decision = "deny"
    """
    imported: ImportedRules = gemini.policy_rules_in(text)
    assert subjects(imported.of("deny")) == ["anything of edit", "anything of mcp__github__delete_repo"]
    own = gemini.own_rules_in_policy(text).rules("Gemini CLI", "p.toml")
    assert subjects(own.deny) == ["anything of edit", "anything of mcp__github__delete_repo"]
    assert subjects(own.ask) == ["anything of web"]


def test_permissions_of_opencode_name_edits_by_their_files() -> None:
    own = opencode.own_rules_in(
        {
            "permission": {
                "bash": "allow",
                "edit": {"secrets/*": "deny", "*.sql": "ask", "src/*": "allow"},
                "webfetch": "deny",
                "github_*": "ask",
                "read": "deny",
            }
        }
    ).rules("OpenCode", "opencode.json")
    assert subjects(own.deny) == ["anything of web"]
    # The denial stands before a rule that allows, which may be about the same files.
    assert subjects(own.ask) == ["edits of secrets/*", "edits of *.sql", "anything of github_*"]


def test_rules_about_edits_make_no_command_asked() -> None:
    own = opencode.own_rules_in({"permission": {"edit": "ask"}}).rules("OpenCode", "o.json")
    assert own.read_only is None
    assert [rule.tool for rule in own.ask] == ["edit"]
