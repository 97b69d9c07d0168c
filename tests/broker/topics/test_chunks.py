"""`Assembly`: chunks of messages become complete in their order, as consumers assemble them."""

from pulsar_sansio.broker.topics.chunks import Assembly
from pulsar_sansio.broker.topics.messages import Chunk


def chunk(number: int, total: int = 3, uuid: str = "u", producer: str = "p") -> Chunk:
    return Chunk(producer, uuid, number, total, publish_time=number)


def taken(assembly: Assembly, *chunks: Chunk, first: int = 0) -> list[list[int] | None]:
    return [assembly.take(offset, each) for offset, each in enumerate(chunks, first)]


def test_the_last_chunk_completes_the_message() -> None:
    assembly = Assembly()
    assert taken(assembly, chunk(0), chunk(1), chunk(2)) == [None, None, [0, 1, 2]]
    assert assembly.unfinished() == []


def test_messages_may_be_interleaved() -> None:
    """A producer's name belongs to the identity, for two producers may choose one uuid."""
    chunks = [chunk(0, 2), chunk(0, 2, producer="q"), chunk(1, 2, producer="q"), chunk(1, 2)]
    assert taken(Assembly(), *chunks) == [None, None, [1, 2], [0, 3]]


def test_after_a_resend_the_later_copies_count() -> None:
    assembly = Assembly()
    chunks = [chunk(0), chunk(1), chunk(0), chunk(1), chunk(2)]
    assert taken(assembly, *chunks)[-1] == [2, 3, 4]


def test_a_chunk_that_came_before_is_passed_over() -> None:
    assembly = Assembly()
    chunks = [chunk(0), chunk(1), chunk(1), chunk(2)]
    assert taken(assembly, *chunks) == [None, None, None, [0, 1, 3]]


def test_a_gap_discards_the_message_until_another_first_chunk() -> None:
    assembly = Assembly()
    assert taken(assembly, chunk(0), chunk(2)) == [None, None]
    assert assembly.unfinished() == []
    assert taken(assembly, chunk(1), chunk(2), first=2) == [None, None]
    assert taken(assembly, chunk(0), chunk(1), chunk(2), first=4) == [None, None, [4, 5, 6]]


def test_another_number_of_chunks_discards_the_message() -> None:
    assembly = Assembly()
    assert taken(assembly, chunk(0, 2), chunk(1, 3), chunk(1, 2)) == [None, None, None]
    assert assembly.unfinished() == []


def test_unfinished_messages_have_the_offsets_so_far() -> None:
    assembly = Assembly()
    taken(assembly, chunk(0), chunk(0, uuid="v"), chunk(1))
    found = {each.latest.uuid: (each.latest.number, each.offsets) for each in assembly.unfinished()}
    assert found == {"u": (1, [0, 2]), "v": (0, [1])}
