"""A program with the Claude Agent SDK: the prompt, the Claude Code that it starts, and the instance that supervises."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, query

from whisper_tui.integrations.claude_agent import supervised


async def main(prompt: str, claude: str, home: str) -> None:
    options = supervised(ClaudeAgentOptions(cli_path=claude, model="claude-sonnet-4-5", setting_sources=[]), home=home)
    async for message in query(prompt=prompt, options=options):
        print(message, flush=True)


asyncio.run(main(*sys.argv[1:]))
