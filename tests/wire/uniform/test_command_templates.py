"""Templates of MESSAGE and SEND_RECEIPT: which bytes may differ, and which commands have none."""

import pytest

from pulsar_sansio.wire import MessageCommand, encode_send_receipt, proto
from pulsar_sansio.wire.commands.delivery_commands import DeliveryDecoder
from pulsar_sansio.wire.commands.publish_commands import ReceiptDecoder
from pulsar_sansio.wire.uniform.command_templates import (
    LONGEST_COMMAND,
    LONGEST_NUMBER,
    delivery_template,
    pieces_reader,
    receipt_template,
    split_number,
)


@pytest.mark.parametrize(("length", "parts"), [(1, (0, 1)), (2, (0, 2)), (3, (2, 1)), (4, (2, 2))])
def test_a_number_has_a_low_and_a_high_part(length: int, parts: tuple[int, int]) -> None:
    assert split_number(length) == parts
    assert sum(parts) == length


def test_pieces_follow_each_other() -> None:
    assert pieces_reader(1, 0, 2)(b"xabcd", 1) == (b"a", b"", b"bc")


def message_body(entry: int, redelivery_count: int | None = None) -> tuple[bytes, int]:
    """Return a MESSAGE command and the position of its entry's number."""
    command = proto.CommandMessage(consumer_id=7, redelivery_count=redelivery_count)
    command.message_id.ledgerId = 300
    command.message_id.entryId = entry
    body = command.SerializeToString()
    # consumer_id (2), message_id's tag and size (2), ledgerId (3), the tag of entryId (1)
    return body, 8


def test_a_delivery_has_the_bytes_around_the_entrys_number() -> None:
    body, entry = message_body(200)
    template = delivery_template(body, 0, entry, len(body), 7, 300, -1, 0, None)
    assert template is not None
    assert template.front == body[:8]
    assert body[8:10] == b"\xc8\x01"
    assert template.back == body[10:]
    assert template.sizes == (8, 2, len(body) - 10)
    front, low, high, back = template.read(body, 0)
    assert (front, low, high, back) == (template.front, b"", b"\xc8\x01", template.back)


def test_a_delivery_that_is_too_long_has_none() -> None:
    body, entry = message_body(2 ** (7 * LONGEST_NUMBER))
    assert delivery_template(body, 0, entry, len(body), 7, 300, -1, 0, None) is None
    body, entry = message_body(200)
    long = body + bytes(LONGEST_COMMAND)
    assert delivery_template(long, 0, entry, len(long), 7, 300, -1, 0, None) is None


def receipt_body(sequence_id: int, entry: int) -> tuple[bytes, int, int]:
    """Return a SEND_RECEIPT command and the positions of its two numbers."""
    frame = encode_send_receipt(7, sequence_id, 300, entry)
    command = proto.BaseCommand.FromString(frame[8:]).send_receipt
    body = command.SerializeToString()
    number = len(proto.CommandSend(producer_id=7, sequence_id=sequence_id).SerializeToString()) - 3
    return body, 3, 3 + number + 2 + 3 + 1


def test_a_receipt_has_the_bytes_around_its_two_numbers() -> None:
    body, sequence, entry = receipt_body(200, 5)
    template = receipt_template(body, 0, sequence, entry, len(body), 7, 300, None)
    assert template is not None
    front, low, high, middle, entry_low, entry_high, back = template.read(body, 0)
    assert (front, middle, back) == (template.front, template.middle, template.back)
    assert (low, high) == (b"", b"\xc8\x01")
    assert (entry_low, entry_high) == (b"", b"\x05")


def test_a_receipt_in_another_order_or_too_long_has_none() -> None:
    body, sequence, entry = receipt_body(200, 5)
    assert receipt_template(body, 0, sequence + 1, entry, len(body), 7, 300, None) is None
    assert receipt_template(body, 0, sequence, sequence, len(body), 7, 300, None) is None
    long = body + bytes(LONGEST_COMMAND)
    assert receipt_template(long, 0, sequence, entry, len(long), 7, 300, None) is None
    huge, sequence, entry = receipt_body(2 ** (7 * LONGEST_NUMBER), 5)
    assert receipt_template(huge, 0, sequence, entry, len(huge), 7, 300, None) is None


def test_decoders_learn_templates_that_give_equal_commands() -> None:
    deliveries, receipts = DeliveryDecoder(), ReceiptDecoder()
    for entry in (1, 2, 200, 20_000, 3_000_000):
        body, _ = message_body(entry, redelivery_count=2)
        decoded = deliveries.decode(body, 0, len(body), len(body))
        assert isinstance(decoded, MessageCommand)
        assert (decoded.entry_id, decoded.redelivery_count) == (entry, 2)
        body, _, _ = receipt_body(entry, entry + 1)
        receipt = receipts.decode(body, 0, len(body), len(body))
        assert (receipt.sequence_id, receipt.entry_id) == (entry, entry + 1)
