"""`TypedProducer`: a producer with a schema, to which the application gives values.

A value is encoded before anything waits, so a value that is none of the schema raises `InvalidMessage`, and
nothing is sent. A producer of bytes is a `Producer`, which does not know of schemas.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pulsar_sansio import InvalidMessage, MessageId, OutgoingMessage, ProducerSpec
from pulsar_sansio import client_outputs as outputs

from ..client.transaction import Transaction
from ..values import T_contra
from .producer import MessageFields, Producer, outgoing
from .receipts import Receipt

if TYPE_CHECKING:
    from ..client.driver import Driver


class TypedProducer(Producer[T_contra]):
    """Made by `client.create_producer` with a schema."""

    def __init__(self, driver: "Driver", handle: int, spec: ProducerSpec, *, waits: bool = True) -> None:
        super().__init__(driver, handle, spec, waits=waits)
        self._encode = self._machine.encoder(handle)

    async def send(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> MessageId:
        return await super().send(self._message(message, fields))

    async def enqueue(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> Receipt:
        return await super().enqueue(self._message(message, fields))

    def enqueue_nowait(
        self, message: T_contra | OutgoingMessage | None, **fields: Unpack[MessageFields]
    ) -> Receipt:
        return super().enqueue_nowait(self._message(message, fields))

    async def send_many(
        self,
        messages: Iterable[T_contra | OutgoingMessage | None],
        *,
        transaction: Transaction | None = None,
    ) -> Sequence[MessageId]:
        if not isinstance(messages, Iterable):
            return await super().send_many(messages)
        fields: MessageFields = {} if transaction is None else {"transaction": transaction}
        made = (
            message if isinstance(message, OutgoingMessage) else self._message(message, fields)
            for message in messages
        )
        return await super().send_many(made, transaction=transaction)

    def _message(self, value: Any, fields: MessageFields) -> Any:
        """Return the message of a value. An `OutgoingMessage` has its payload already."""
        if isinstance(value, OutgoingMessage):
            return outgoing(self._driver, value, fields) if fields else value
        payload, key = self._encode(value)
        if key is not None:
            if fields.get("key") is not None:
                raise InvalidMessage("key: the key of the value is the key of the message; give no other one")
            fields = {**fields, "key": key}
        if payload is not None and not fields:
            return payload
        return outgoing(self._driver, payload, fields)

    def _on_output(self, output: Any) -> None:
        if isinstance(output, outputs.ProducerReady | outputs.Attached):  # it may have adopted a schema
            self._encode = self._machine.encoder(self._handle)
        super()._on_output(output)
