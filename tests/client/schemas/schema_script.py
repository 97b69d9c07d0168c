"""A consumer with an Avro schema, and a broker whose topic has had two definitions."""

from dataclasses import dataclass
from typing import Any

from pulsar_sansio.model.errors import ServerError
from pulsar_sansio.model.schema import Schema, SchemaInfo
from pulsar_sansio.schemas import AutoConsume, AvroSchema
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
        if isinstance(schema, AutoConsume):
            assert self.asked_latest() == TOPIC
            self.refuse(ServerError.TopicNotFound)
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

    def asked_latest(self) -> str:
        """Return the topic of the question before SUBSCRIBE."""
        name, command = self.frames()[-1]
        assert (name, command.HasField("schema_version")) == ("GET_SCHEMA", False)
        self.questions = [command]
        topic: str = command.topic
        return topic

    def answer(self, number: int, question: int = -1) -> None:
        """Answer one of the questions that `asked` returned last."""
        self.answer_with(DEFINITIONS[number].info, question, number)

    def answer_with(self, info: SchemaInfo, question: int = -1, number: int = 0) -> None:
        """Answer with any definition."""
        schema = proto.Schema(name="t", schema_data=info.data, type=proto.Schema.Type.Name(info.type))
        for key, value in info.properties:
            schema.properties.add(key=key, value=value)
        answer = proto.CommandGetSchemaResponse(
            request_id=self.questions[question].request_id, schema=schema, schema_version=version(number)
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
