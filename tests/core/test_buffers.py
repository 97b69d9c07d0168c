"""The receive buffer joins the pieces of a frame once, and holds no more than one frame and one read."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.core.buffers import ReceiveBuffer


def parse(buffer: ReceiveBuffer, data: bytes) -> list[bytes]:
    """Frames of a size field and that many bytes, as a reader takes them."""
    whole = buffer.feed(data)
    if whole is None:
        return []
    found = []
    position = 0
    while len(whole) - position >= 4:
        end = position + 4 + int.from_bytes(whole[position : position + 4], "big")
        if end > len(whole):
            break
        found.append(whole[position:end])
        position = end
    buffer.hold(whole, position)
    return found


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(1, 30), max_size=40))
def test_any_cutting_gives_the_same_frames(bodies: list[bytes], cuts: list[int]) -> None:
    frames = [len(body).to_bytes(4, "big") + body for body in bodies]
    data = b"".join(frames)
    buffer = ReceiveBuffer()
    found = []
    for cut in cuts:
        found += parse(buffer, data[:cut])
        data = data[cut:]
    found += parse(buffer, data)
    assert found == frames
    assert len(buffer) == 0


def test_a_large_frame_in_small_pieces_is_joined_once() -> None:
    buffer = ReceiveBuffer()
    body = bytes(100_000)
    data = len(body).to_bytes(4, "big") + body
    assert parse(buffer, data[:3]) == []
    assert parse(buffer, data[3:10]) == []
    joined = 0
    for position in range(10, len(data), 100):
        if buffer.feed(data[position : position + 100]) is not None:
            joined += 1
    assert joined == 1


def test_clearing_forgets_what_was_held() -> None:
    buffer = ReceiveBuffer()
    parse(buffer, b"\0\0\0\x09half")
    assert len(buffer) == 8
    buffer.clear()
    assert parse(buffer, b"\0\0\0\x01x") == [b"\0\0\0\x01x"]
