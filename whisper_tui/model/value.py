"""The common ground of all values: frozen, and strict about what they are made of."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

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

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values for some fields, which are not validated."""
        if deep:
            return super().model_copy(update=update, deep=True)
        # A call is copied twenty times on its way. pydantic also copies extra and private fields, which no value has,
        # and takes five times as long.
        kind = type(self)
        copied = kind.__new__(kind)
        _set(copied, "__dict__", {**self.__dict__, **(update or {})})
        known = self.__pydantic_fields_set__
        _set(copied, "__pydantic_fields_set__", known.union(update) if update else known.copy())
        _set(copied, "__pydantic_extra__", None)
        _set(copied, "__pydantic_private__", None)
        return copied


_set = object.__setattr__
