"""A consumer with dead-letter and retry topics, and the producers of its copies."""

from typing import Any

from pulsar_sansio.model.config import (
    DeadLetterPolicy,
    SubscriptionType,
)
from pulsar_sansio.wire import MessageMetadata, MetadataDecoder, open_payload, proto
from tests.client.acknowledging.test_redelivery import SHARED
from tests.client.broker_script import (
    MILLISECOND,
    WALL,
    ConsumerScript,
)

REDELIVER = "REDELIVER_UNACKNOWLEDGED_MESSAGES"


T = "persistent://public/default/t"


class LettersScript(ConsumerScript):
    """A consumer with a policy of 2 redeliveries, its broker, and that of the copies' producers."""

    def __init__(self, kind: SubscriptionType = SHARED, **spec: Any) -> None:
        spec.setdefault("dead_letter", DeadLetterPolicy(2, "t-dead", "t-retry"))
        spec.setdefault("acknowledgement_group_time", 0.0)
        spec.setdefault("negative_acknowledgement_delay", 1.0)
        spec.setdefault("receiver_queue_size", 10)
        super().__init__(subscription_type=kind, **spec)
        subscribing = self.expect(*["SUBSCRIBE"] * (1 + self.spec.retry))
        self.subscribed = [command.topic for command in subscribing]
        for command in subscribing:
            self.say("SUCCESS", proto.CommandSuccess(request_id=command.request_id))
        self.frames()

    def accept_producer(self, **last: Any) -> Any:
        """The broker accepts the only PRODUCER that came; the PRODUCER."""
        (command,) = self.expect("PRODUCER")
        self.say(
            "PRODUCER_SUCCESS",
            proto.CommandProducerSuccess(
                request_id=command.request_id,
                producer_name=command.producer_name or "named-by-the-broker",
                last_sequence_id=-1,
                producer_ready=True,
            ),
        )
        return command

    def refuse_producer(self) -> None:
        (command,) = self.expect("PRODUCER")
        self.say(
            "ERROR",
            proto.CommandError(request_id=command.request_id, error=proto.NotAllowedError, message="no"),
        )
        self.pass_time(0)

    def sends(self, count: int = 1) -> list[tuple[MessageMetadata, bytes]]:
        """Headers and payloads of so many SENDs, the only frames that came."""
        found = []
        for command in self.expect(*["SEND"] * count):
            _, _, metadata, start = open_payload(command.payload, MetadataDecoder())
            found.append((metadata, bytes(command.payload[start:])))
        return found

    def confirm(self, sequence_id: int, producer: int = 0) -> None:
        """The broker has stored a copy."""
        receipt = proto.CommandSendReceipt(producer_id=producer, sequence_id=sequence_id)
        receipt.message_id.ledgerId = 9
        receipt.message_id.entryId = sequence_id
        self.say("SEND_RECEIPT", receipt)
        self.pass_time(0)

    def permits(self) -> int:
        permits = self.machine.permits
        return permits.at_broker + permits.unreported

    def later(self, message: Any, delay: Any, properties: Any = None, *, cumulative: bool = False) -> int:
        wall_time = WALL + self.now // MILLISECOND
        request = self.client.reconsume_later(
            self.now, self.consumer, message, delay, wall_time, properties, cumulative=cumulative
        )
        self.pump()
        return request
