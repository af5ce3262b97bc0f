"""Files as users of the clients have them: of every shape, with comments, in one line, with settings of their own."""

CLAUDE_SETTINGS = """{
    "$schema": "https://json.schemastore.org/claude-code-settings.json",
    "model": "opus",
    "permissions": {
        "allow": ["Bash(git diff:*)", "Read(~/.zshrc)"],
        "deny": [
            "Bash(curl:*)"
        ]
    },
    "hooks": {
        "PreToolUse": [
            {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "~/bin/lint", "timeout": 5}]}
        ],
        "Stop": []
    },
    "env": {"FOO": "bär"}
}
"""
CLAUDE_STATE = '{"numStartups":7,"projects":{"/w":{"allowedTools":[]}},"oauthAccount":{"emailAddress":"a@example.org"}}'
CODEX_CONFIG = """# my settings
model = "gpt-5"   # the good one
approval_policy = "on-request"

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs-server"]

[projects."/w"]
trust_level = "trusted"

[tui]
notifications = true
"""
GEMINI_SETTINGS = """{
  // how it looks
  "ui": { "theme": "GitHub" },
  "mcpServers": {
    "docs": { "command": "npx", "args": ["-y", "docs"] } // read only
  },
  /* keep */
  "security": { "auth": { "selectedType": "gemini-api-key" } }
}
"""
OPENCODE_CONFIG = """{
  "$schema": "https://opencode.ai/config.json",
  // models, and what they may do
  "model": "anthropic/claude-sonnet-4-5",
  "permission": {
    "edit": "ask", // always
    "bash": "ask",
  },
}
"""
COPILOT_SERVERS = """{
  "mcpServers": {
    "docs": { "type": "local", "command": "npx", "args": ["-y", "docs"], "tools": ["*"] }
  }
}
"""
KIMI_CONFIG = """# Mine.
default_model = "k"

[[permission.rules]]
decision = "deny"
pattern = "Bash(rm *)"

[[hooks]]
event = "Stop"
command = "notify-send done"
"""
REALISTIC = {
    "claude": {".claude/settings.json": CLAUDE_SETTINGS, ".claude.json": CLAUDE_STATE},
    "codex": {".codex/config.toml": CODEX_CONFIG, ".codex/hooks.json": '{"hooks": {"Stop": []}}\n'},
    "gemini": {".gemini/settings.json": GEMINI_SETTINGS},
    "opencode": {".config/opencode/opencode.jsonc": OPENCODE_CONFIG},
    "qwen": {".qwen/settings.json": GEMINI_SETTINGS},
    "copilot": {".copilot/mcp-config.json": COPILOT_SERVERS},
    "kimi": {".kimi-code/config.toml": KIMI_CONFIG},
    "kilo": {".config/kilo/kilo.jsonc": OPENCODE_CONFIG},
}
