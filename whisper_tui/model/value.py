"""The common ground of all values: frozen, and strict about what they are made of."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """An immutable value; unknown fields are an error, never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")
