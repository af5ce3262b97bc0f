"""A tool of your own: a human sees its name, its description and the arguments before it is carried out."""

import asyncio
from typing import Any, ClassVar

from whisper_tui import AITool, Approve, CallRecord, Deny, ToolFailure, in_process


class Publish(AITool):
    """Puts a text where everybody can read it."""

    name = "publish"
    description = "Publishes a text on the notice board."
    parameters_schema: ClassVar[dict[str, Any]] = {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What is published."}},
        "required": ["text"],
        "additionalProperties": False,
    }

    def get_ai_prompt_instructions(self) -> str:
        """What a model is told."""
        return "Use `publish` with `text` to tell everybody something."

    async def execute(self, **kwargs: Any) -> dict[str, Any]:
        """Reached only with checked arguments, and only when somebody has agreed."""
        return {"published": kwargs["text"]}


def decide(call: CallRecord) -> Approve | Deny:
    """Take the human's place: read before agreeing."""
    print("asked:", " ".join(call.spec.command.words()))
    return Deny(reason="keep that to yourself") if "secret" in call.call.arguments["text"] else Approve()


async def main() -> None:
    """One call that is agreed to, and one that is not."""
    async with in_process("my agent", decide=decide, tools=[Publish()]) as agent:
        print(await agent.call("publish", {"text": "hello"}))
        try:
            await agent.call("publish", {"text": "a secret"})
        except ToolFailure as failure:
            print(failure.message)


asyncio.run(main())
