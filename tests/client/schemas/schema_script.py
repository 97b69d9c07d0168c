"""A consumer with an Avro schema, and a broker whose topic has had two definitions."""

from dataclasses import dataclass
from typing import Any

from pulsar_sansio.model.schema import Schema, SchemaInfo
from pulsar_sansio.schemas import AvroSchema
from pulsar_sansio.wire import proto
from tests.client.broker_script import ConsumerScript, batch_bytes, entry_bytes

TOPIC = "persistent://public/default/t"


@dataclass
class Old:
    id: str


@dataclass
class Order:
    id: str
    amount: int = 1


OLD, NEW = AvroSchema(Old), AvroSchema(Order)
DEFINITIONS: dict[int, Schema[Any]] = {0: OLD, 1: NEW}


def version(number: int) -> bytes:
    return number.to_bytes(8, "big")


class SchemaScript(ConsumerScript):
    """`order(entry, number)` delivers an order that was written with definition `number`."""

    def __init__(self, schema: Schema[Any] = NEW, **spec: Any) -> None:
        super().__init__(schema=schema, **spec)
        self.accept()
        self.frames()
        self.outputs()

    def order(self, entry: int, number: int | None, **fields: Any) -> None:
        given = {} if number is None else {"schema_version": version(number)}
        self.deliver(entry, entry_bytes(payload(entry, number), sequence_id=entry, **given), **fields)

    def orders(self, entry: int, number: int, size: int) -> None:
        payloads = [payload(entry, number)] * size
        self.deliver(entry, batch_bytes(payloads, schema_version=version(number)))

    def asked(self) -> list[tuple[str, bytes | None]]:
        """The topic and version of each GET_SCHEMA since the last call; there is nothing else but FLOW."""
        frames = [frame for frame in self.frames() if frame[0] != "FLOW"]
        assert {name for name, _ in frames} <= {"GET_SCHEMA"}
        self.questions = [command for _, command in frames]
        return [
            (command.topic, command.schema_version if command.HasField("schema_version") else None)
            for command in self.questions
        ]

    def answer(self, number: int, question: int = -1) -> None:
        """Answer one of the questions that `asked` returned last."""
        self.answer_with(DEFINITIONS[number].info, question)

    def answer_with(self, info: SchemaInfo, question: int = -1) -> None:
        """Answer with any definition."""
        schema = proto.Schema(name="t", schema_data=info.data, type=proto.Schema.Type.Name(info.type))
        for key, value in info.properties:
            schema.properties.add(key=key, value=value)
        answer = proto.CommandGetSchemaResponse(
            request_id=self.questions[question].request_id, schema=schema, schema_version=version(0)
        )
        self.say("GET_SCHEMA_RESPONSE", answer)

    def refuse(self, error: Any, question: int = -1) -> None:
        self.say(
            "GET_SCHEMA_RESPONSE",
            proto.CommandGetSchemaResponse(
                request_id=self.questions[question].request_id, error_code=error, error_message="no such"
            ),
        )

    def values(self) -> list[Any]:
        return [message.value for message in self.take()]


def payload(entry: int, number: int | None) -> bytes:
    if number == 0:
        return OLD.encode(Old(f"o{entry}"))
    return NEW.encode(Order(f"o{entry}", 7))
