"""`FrameReader`: frames, runs of uniform messages, limits and declined runs."""

import pytest

from pulsar_sansio.model.errors import FrameError
from pulsar_sansio.wire import FrameReader, MessageCommand, UniformMessages, encode_ping, proto
from tests.wire.uniform.test_message_reader import uniform

LIMIT = 5 * 1024 * 1024

Command = proto.BaseCommand


def test_frames_are_yielded_with_their_ends() -> None:
    ping = encode_ping()
    frames = list(FrameReader(LIMIT).frames(ping + ping + ping[:5]))
    assert [(kind, end) for kind, _, end in frames] == [
        (Command.PING, len(ping)),
        (Command.PING, 2 * len(ping)),
    ]


def test_a_new_limit_counts_from_the_next_frame() -> None:
    ping = encode_ping()
    reader = FrameReader(LIMIT)
    frames = reader.frames(ping + ping)
    next(frames)
    reader.limit = 1
    with pytest.raises(FrameError):
        next(frames)


def test_messages_are_yielded_one_by_one_unless_uniform_ones_are_read() -> None:
    data = uniform(200)
    assert {kind for kind, _, _ in FrameReader(LIMIT).frames(data)} == {Command.MESSAGE}


def test_uniform_messages_are_yielded_as_runs() -> None:
    data = uniform(200)
    reader = FrameReader(LIMIT)
    reader.reads_uniform_messages = True
    runs = [command for kind, command, _ in reader.frames(data) if kind is None]
    assert runs
    assert all(isinstance(run, UniformMessages) for run in runs)


def test_a_declined_run_is_yielded_again_frame_by_frame() -> None:
    data = uniform(200)
    reader = FrameReader(LIMIT)
    reader.reads_uniform_messages = True
    messages = declined = 0
    for kind, command, _ in reader.frames(data):
        if kind is None:
            reader.declined = True
            declined += 1
        else:
            assert isinstance(command, MessageCommand)
            messages += 1
    assert declined
    assert messages == 200
