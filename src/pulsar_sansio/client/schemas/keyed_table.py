"""`KeyedTable`: a table view by the keys of a schema, in place of the text that messages carry."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...model.message import Message
from ...model.schema import Schema


class KeyedTable(Mapping[Any, Any]):
    """`rows`: the table by the text of its keys. Messages whose key is none of the schema are not in it."""

    __slots__ = ("_rows", "_schema", "_texts", "left_out", "why")

    def __init__(self, schema: Schema[Any], rows: Mapping[str, Any]) -> None:
        self._schema = schema
        self._rows = rows
        self._texts: dict[Any, str] = {}
        """The text of each key in the table."""
        self.left_out = 0
        """The number of messages whose key could not be decoded."""
        self.why = ""
        """The reason for the last of them."""

    def __getitem__(self, key: Any) -> Any:
        return self._rows[self._texts[key]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def keys_of(self, messages: Iterable[Message[Any]]) -> dict[str, Any]:
        """Return the keys of messages by their text, without those that are none of the schema."""
        keys: dict[str, Any] = {}
        for message in messages:
            if message.key is None:
                continue
            try:
                key = self._schema.decode(message.key_bytes or b"")
                self._texts.get(key)  # which raises for a key that no dict can have
            except Exception as error:  # also of the code of an application's own schema
                self.left_out += 1
                self.why = f"{type(error).__name__}: {error}"[:300]
            else:
                keys[message.key] = key
        return keys

    def put(self, key: Any, text: str) -> None:
        """The row of this text has a value."""
        self._texts[key] = text

    def remove(self, key: Any, text: str) -> None:
        """The row of this text is gone. The key may have a row of another text, which is younger."""
        if self._texts.get(key) == text:
            del self._texts[key]
