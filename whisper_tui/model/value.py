"""The common ground of all values: frozen, and strict about what they are made of."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LARGEST_NUMBER = 2**53 - 1
"""The largest whole number that every reader of JSON understands."""

Whole = Annotated[int, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Count = Annotated[int, Field(ge=0, le=LARGEST_NUMBER)]


class Value(BaseModel):
    """An immutable value; unknown fields are an error, never ignored. Numbers are finite, for JSON has no others."""

    # A program that lists calls or draws the cockpit needs a few of the 200 values, and building each takes a
    # millisecond: so each is built when it is used first.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)
