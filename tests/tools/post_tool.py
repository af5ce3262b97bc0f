"""A tool of an author's own."""

from whisper_tui.tools import AITool


class Post(AITool):
    """Posts a text."""

    name = "post"
    description = "Posts a text."
    parameters_schema = {"type": "object", "properties": {"text": {"type": "string"}}}  # noqa: RUF012

    def get_ai_prompt_instructions(self):
        return "Use post to post."

    async def execute(self, text):
        return {"posted": text}
