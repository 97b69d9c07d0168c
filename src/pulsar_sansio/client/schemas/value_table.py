"""`ValueTable`: the values of a table view with a schema, each decoded when it is looked at, once."""

from collections.abc import Iterator, Mapping
from typing import Any

from ...model.message import Message


class ValueTable(Mapping[str, Any]):
    """The value of each key's last message. Looking at one raises `SchemaDecodingError` where the message
    holds no value; other keys are not concerned."""

    __slots__ = ("_messages",)

    def __init__(self, messages: Mapping[str, Message[Any]]) -> None:
        self._messages = messages

    def __getitem__(self, key: str) -> Any:
        return self._messages[key].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._messages)

    def __len__(self) -> int:
        return len(self._messages)
