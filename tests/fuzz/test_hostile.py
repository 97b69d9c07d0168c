"""Hostile peers: that they are everywhere, that they would be noticed, and that they change nothing."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fuzz import bounds, broker_side, client_side, hostile
from fuzz.__main__ import main
from fuzz.draws import Draws
from fuzz.mischief import BROKER_SAYS, CLIENT_SAYS, Mischief
from fuzz.mutations import MUTATIONS, cases, frame, legal_command, mutated_command
from fuzz.payloads import BOMB, CODECS, LIES, bomb, entry
from fuzz.reports import Report, cause_of
from fuzz.trees import NAMES, TYPES, descriptor_of, encode, paths_of
from pulsar_sansio import BrokerConfig, ClientConfig, CompressionType, ConnectionLost, ConsumerSpec
from pulsar_sansio.client.connecting.connection import Connection
from pulsar_sansio.client.outputs import EndOfTopic
from pulsar_sansio.model.errors import ChecksumMismatch, FrameError
from pulsar_sansio.wire import FrameDecoder, decompress, proto, unpack_payload

# --- what is said ------------------------------------------------------------------------------------


def test_every_field_of_every_command_is_mutated() -> None:
    """Commands of both directions, messages inside messages, each mutation that can be done to a field."""
    every = set(proto.BaseCommand.Type.values())
    assert set(TYPES) == every
    assert {case.number for case in cases()} | {18, 19} == every, "PING and PONG have no fields"
    for number in TYPES:
        fields = {case.path for case in cases() if case.number == number}
        assert fields == set(paths_of(descriptor_of(number)))
    assert {case.mutation for case in cases()} == set(MUTATIONS)
    assert set(BROKER_SAYS) | set(CLIENT_SAYS) < every
    assert not set(BROKER_SAYS) & set(CLIENT_SAYS) - {Command.PING, Command.PONG} - {
        Command.CLOSE_PRODUCER,
        Command.CLOSE_CONSUMER,
    }


Command = proto.BaseCommand


@pytest.mark.slow
def test_mutations_are_met_and_not_all_are_refused() -> None:
    """Some mutations of every kind get through the frame, to where commands are handled; of some kinds all
    do."""
    draws = Draws.of_seed(1)
    taken = dict.fromkeys(MUTATIONS, 0)
    refused = dict.fromkeys(MUTATIONS, 0)
    for case in cases()[::3]:
        data = frame(encode(mutated_command(case, draws, {})))
        try:
            assert FrameDecoder().decode(data, 0, 10**6) is not None
            taken[case.mutation] += 1
        except FrameError:
            refused[case.mutation] += 1
    assert {mutation for mutation in MUTATIONS if not taken[mutation]} <= {"not UTF-8", "length too long"}
    assert not taken["length too long"]
    assert refused["length too long"]


def test_a_legal_command_is_legal() -> None:
    draws = Draws.of_seed(1)
    for number in TYPES:
        for _ in range(5):
            whole = frame(encode(legal_command(number, draws, {})))
            decoded = FrameDecoder().decode(whole, 0, 10**6)
            assert decoded is not None
            assert decoded[0] == number, NAMES[number]


def test_lies_keep_everything_else_right() -> None:
    """Entries can be unpacked, but for those that lie about the size of their metadata."""
    draws = Draws.of_seed(1)
    kinds: set[str] = set()
    unpacked: set[str] = set()
    for _ in range(1000):
        name, payload = entry(draws, 8192)
        kinds.add(name)
        with suppress(FrameError, ChecksumMismatch):
            unpack_payload(payload)
            unpacked.add(name)
    assert kinds == {"honest", *LIES}
    assert kinds - unpacked == {"size of metadata"}


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_a_bomb_is_one(codec: int) -> None:
    assert len(bomb(codec)) < 40_000
    whole = BOMB // {CompressionType.SNAPPY: 8, CompressionType.LZ4: 2}.get(CompressionType(codec), 1)
    assert decompress(codec, bomb(codec), whole, BOMB) == bytes(whole)


def test_draws_from_bytes_are_the_same_choices_and_end() -> None:
    """One byte for a choice among few; nothing but first choices when the bytes are used up."""
    draws = Draws.of_bytes(bytes([7, 200, 255]))
    assert (draws.below(5), draws.chance(50), draws.choice("ab"), draws.exhausted) == (2, True, "b", True)
    assert (draws.below(1000), draws.chance(99), draws.choice("ab"), draws.blob(3)) == (
        0,
        False,
        "a",
        bytes(3),
    )
    seeds = [Draws.of_seed(9).blob(20), Draws.of_seed(9).blob(20), Draws.of_seed(10).blob(20)]
    assert seeds[0] == seeds[1] != seeds[2]


# --- rounds ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("side", hostile.SIDES)
def test_a_few_rounds(side: str) -> None:
    """Only declared errors, the others go on, everything ends; memory within the bound."""
    report = Report()
    for seed in range(1, 9):
        report.add(hostile.play(side, seed, frames=150, traced=seed == 5))
    assert report.failures == []
    assert report.frames >= 8 * 150
    assert report.attached > report.frames // 2
    assert report.innocent >= 8
    assert report.killed
    assert 0 < report.peak < report.bound
    assert report.slowest < 2.0


@pytest.mark.slow
def test_the_same_seed_is_the_same_round() -> None:
    for side in hostile.SIDES:
        one, other = (hostile.play(side, 3, frames=100) for _ in range(2))
        for report in (one, other):
            report.slowest, report.slowest_label = 0.0, ""
        assert one == other


def found(side: str, seeds: range) -> str:
    """The first failure of some rounds."""
    for seed in seeds:
        report = hostile.play(side, seed, frames=200)
        if report.failures:
            return report.failures[0]
    return "nothing"


def raise_key_error(*_: Any) -> None:
    raise KeyError("planted")


CANARIES: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], None], str]] = {
    "an exception comes out of the client": (
        "client",
        lambda patch: patch.setattr(Connection, "_on_topic_migrated", raise_key_error),
        "KeyError: 'planted'",
    ),
    "an exception comes out of the broker": (
        "broker",
        lambda patch: patch.setattr(
            "pulsar_sansio.broker.serving.connection.Connection.write_message", raise_key_error
        ),
        "KeyError: 'planted'",
    ),
    "news without end": (
        "client",
        lambda patch: patch.setattr(
            Connection,
            "_on_topic_migrated",
            lambda self, _: [self._context.emit(EndOfTopic(1)) for _ in range(1000)],
        ),
        "outputs",
    ),
    "a link that dies with another": (
        "client",
        lambda patch: patch.setattr(
            Connection,
            "_on_topic_migrated",
            lambda self, _: self._services.links.close_all(RuntimeError("all")),
        ),
        "which is on another link",
    ),
    "a ticket that is settled twice": (
        "client",
        lambda patch: patch.setattr(
            "pulsar_sansio.client.producing.send_window.SendWindow.on_receipt",
            twice_receipted(),
        ),
        "settled twice",
    ),
    "an exception comes out of a seek": (
        "client",
        lambda patch: patch.setattr(
            "pulsar_sansio.client.positions.seeking.Seeking._succeeded", raise_key_error
        ),
        "KeyError: 'planted'",
    ),
    "an exception comes out of a table view": (
        "client",
        lambda patch: patch.setattr("pulsar_sansio.client.table_view.TableView.refresh", raise_key_error),
        "KeyError: 'planted'",
    ),
    "an exception comes out of a list of topics": (
        "client",
        lambda patch: patch.setattr(
            "pulsar_sansio.client.multi_topics.patterns.pattern.PatternTopics.on_watched_list",
            raise_key_error,
        ),
        "KeyError: 'planted'",
    ),
    "a client that is forgotten": (
        "broker",
        lambda patch: patch.setattr(
            "pulsar_sansio.broker.serving.connection.Connection.confirm_send", lambda *_, **__: None
        ),
        "the innocent client published and got",
    ),
}


def twice_receipted() -> Callable[..., None]:
    from pulsar_sansio.client.producing.send_window import SendWindow

    honest = SendWindow.on_receipt

    def on_receipt(self: SendWindow, connection: Any, receipt: Any) -> None:
        oldest = self.entries[0] if self.entries else None
        honest(self, connection, receipt)
        if oldest is not None and (not self.entries or self.entries[0] is not oldest):
            self.fail(oldest.first_ticket, oldest.count, ConnectionLost("and failed as well"))

    return on_receipt


@pytest.mark.slow
@pytest.mark.parametrize("name", CANARIES)
def test_it_would_be_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bugs, each of another kind: a run that cannot find them is worth nothing."""
    side, plant, expected = CANARIES[name]
    plant(monkeypatch)
    assert expected in found(side, range(1, 12))


def test_what_is_found_can_be_played_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "_on_connected", raise_key_error)
    report = hostile.play("client", 77, frames=10)
    [failure] = report.failures
    assert failure.startswith("python -m fuzz hostile --replay client:77\n")
    assert "planted" in failure


def test_more_memory_than_allowed_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "client_bound", lambda *_: 1000)
    [failure] = hostile.play("client", 1, frames=20, traced=True).failures
    assert "allowed are 1000" in failure


# --- figures -----------------------------------------------------------------------------------------


def test_bounds_follow_the_configuration() -> None:
    small = ClientConfig("pulsar://h", max_message_size=8192, max_announced_message_size=8192)
    large = ClientConfig("pulsar://h", max_message_size=8192, max_announced_message_size=65536)
    one, many = ConsumerSpec("t", "s", receiver_queue_size=1), ConsumerSpec("t", "s", receiver_queue_size=100)
    assert bounds.client_bound(small, [one], 1) < bounds.client_bound(small, [many], 1)
    assert bounds.client_bound(small, [one], 1) < bounds.client_bound(small, [one], 2)
    assert bounds.client_bound(small, [one], 1) < bounds.client_bound(large, [one], 1)
    over_http = ClientConfig("http://h", max_message_size=8192, max_announced_message_size=8192)
    assert bounds.client_bound(small, [one], 1) < bounds.client_bound(over_http, [one], 1)
    few = BrokerConfig(max_connections=2, max_topics=5)
    lots = BrokerConfig(max_connections=20, max_topics=5)
    assert bounds.broker_bound(few, 0, 0) < bounds.broker_bound(lots, 0, 0)
    assert bounds.broker_bound(few, 0, 0) < bounds.broker_bound(few, 10**6, 10)
    assert bounds.fed_bound(0, 0, 8192) < bounds.fed_bound(1000, 0, 8192) < bounds.fed_bound(1000, 1, 8192)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("a frame of 12 bytes is over the limit of 7", "a frame of # bytes is over the limit of #"),
        ("the text a.b.c is not UTF-8", "the text … is not UTF-8"),
        (
            "the broker could not store a message: UnknownError: x\ny",
            "the broker could not store a message: UnknownError",
        ),
        ("connection to evil:6650 refused", "connection to … refused"),
        (
            "the broker sent ACK while the connection was Ready",
            "the broker sent … while the connection was Ready",
        ),
    ],
)
def test_causes_are_counted_by_kind(reason: str, cause: str) -> None:
    assert cause_of(reason) == cause


@pytest.mark.slow
def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hostile", "--seconds", "0.3", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert {"frames", "killed", "peak", "bound", "cases", "innocent", "failures", "seconds"} <= set(figures)
    assert figures["frames"] > 0
    assert figures["processor"] > 0
    assert figures["resident"] > figures["peak"]
    assert main(["hostile", "--seconds", "60", "--frames", "500", "--side", "broker"]) == 0
    said = capsys.readouterr().out
    assert "0 violations" in said
    assert 500 <= int(said.split()[0]) < 1000, "rounds are whole"
    assert main(["hostile", "--replay", "broker:1"]) == 0
    assert "links killed, by cause" in capsys.readouterr().out
    assert main(["hostile", "--replay", "no-target:1"]) == 2
    assert main(["hypothesis", "names", "--seconds", "0.1"]) == 0
    assert "executions" in capsys.readouterr().out


def test_a_machine_says_what_it_expects() -> None:
    """The mischief of each side speaks with ids that mean something to it."""
    for says, known in (
        (BROKER_SAYS, client_side.ClientRound(Draws.of_seed(1), Report()).known),
        (CLIENT_SAYS, broker_side.BrokerRound(Draws.of_seed(1), Report()).known),
    ):
        mischief = Mischief(Draws.of_seed(1), says, known, 8192, 0)
        for _ in range(400):
            mischief.next()
        groups = {kind.partition(": ")[0] for kind in mischief.kinds}
        assert {"field", "frame", "any command", "PING"} <= groups
        assert mischief.cases == sum(n for kind, n in mischief.kinds.items() if kind.startswith("field: "))
