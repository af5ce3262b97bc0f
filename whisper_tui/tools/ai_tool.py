"""What a tool for an AI model is: a name, a schema, words for the model, and something to do."""

import json
from abc import ABC, abstractmethod
from typing import Any

from whisper_tui.model.errors import WhisperError


class AITool(ABC):
    """A tool that a model may call by its name with arguments that match a published JSON Schema."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The tool's identifier, unique in a registry."""

    @property
    @abstractmethod
    def description(self) -> str:
        """One or two sentences about what the tool does."""

    @property
    @abstractmethod
    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments, an object schema; arguments are validated against it."""

    @abstractmethod
    def get_ai_prompt_instructions(self) -> str:
        """Text for a model's prompt: when and how to use the tool, and what it returns."""

    @abstractmethod
    async def execute(self, **kwargs: Any) -> Any:
        """Do it, and return something that can be written as JSON. A synchronous `execute` is run in a thread."""

    def text(self, result: Any) -> str:
        """A result for a model that reads text: a string as it is, anything else as JSON."""
        return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)

    def is_error(self, result: Any) -> bool:
        """Whether a result tells of a failure."""
        return False

    def error_result(self, error: WhisperError) -> Any | None:
        """A failure as a result in the tool's own shape. None: the tool has none, and the error is raised."""
        return None

    async def needs_approval(self, arguments: dict[str, Any]) -> bool:
        """Whether a call with these checked arguments goes through the approval queue, where there is one."""
        return True

    def approval_description(self, arguments: dict[str, Any]) -> str:
        """What the one who approves is told about a call, beside the tool's name and the arguments."""
        return self.description

    @property
    def category(self) -> str | None:
        """The kind of tool. None: of no kind in particular."""
        return None

    @property
    def read_only(self) -> bool:
        """Whether no call of it changes anything."""
        return False

    @property
    def tags(self) -> list[str]:
        """Words to find the tool by."""
        return []

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        """The tool as chat completion APIs want it declared."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema,
            },
        }
