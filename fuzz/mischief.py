"""`Mischief`: one hostile frame after the other, for one direction.

It mixes legal commands without a request, every case of `mutations` in turn, payloads that lie, broken
frames, and random bytes. Commands of the right direction with ids that mean something are the most frequent,
because they get furthest.
"""

from collections import Counter
from functools import cache
from typing import NamedTuple

from fuzz.draws import Draws
from fuzz.mutations import FRAME_MUTATIONS, Case, cases, frame, legal_command, mutated_command
from fuzz.payloads import RARE, encode_frame, entry, run_of_messages
from fuzz.trees import NAMES, TYPES, Known, encode
from pulsar_sansio.wire import proto

Command = proto.BaseCommand

BROKER_SAYS: tuple[int, ...] = (
    Command.MESSAGE,
    Command.MESSAGE,
    Command.MESSAGE,
    Command.SEND_RECEIPT,
    Command.SEND_RECEIPT,
    Command.SEND_ERROR,
    Command.SUCCESS,
    Command.ERROR,
    Command.ERROR,
    Command.PRODUCER_SUCCESS,
    Command.CLOSE_PRODUCER,
    Command.CLOSE_CONSUMER,
    Command.PING,
    Command.PONG,
    Command.LOOKUP_RESPONSE,
    Command.PARTITIONED_METADATA_RESPONSE,
    Command.REACHED_END_OF_TOPIC,
    Command.ACTIVE_CONSUMER_CHANGE,
    Command.ACK_RESPONSE,
    Command.TOPIC_MIGRATED,
    Command.GET_LAST_MESSAGE_ID_RESPONSE,
    Command.CONSUMER_STATS_RESPONSE,
    Command.GET_TOPICS_OF_NAMESPACE_RESPONSE,
    Command.WATCH_TOPIC_LIST_SUCCESS,
    Command.WATCH_TOPIC_UPDATE,
    Command.GET_SCHEMA_RESPONSE,
    Command.GET_OR_CREATE_SCHEMA_RESPONSE,
)
"""Commands that a client expects at some time; the most frequent stand here more than once."""

CLIENT_SAYS: tuple[int, ...] = (
    Command.SEND,
    Command.SEND,
    Command.SEND,
    Command.ACK,
    Command.ACK,
    Command.FLOW,
    Command.FLOW,
    Command.PRODUCER,
    Command.SUBSCRIBE,
    Command.SUBSCRIBE,
    Command.CLOSE_PRODUCER,
    Command.CLOSE_CONSUMER,
    Command.REDELIVER_UNACKNOWLEDGED_MESSAGES,
    Command.SEEK,
    Command.UNSUBSCRIBE,
    Command.LOOKUP,
    Command.PARTITIONED_METADATA,
    Command.GET_TOPICS_OF_NAMESPACE,
    Command.GET_LAST_MESSAGE_ID,
    Command.CONSUMER_STATS,
    Command.GET_SCHEMA,
    Command.GET_OR_CREATE_SCHEMA,
    Command.PING,
    Command.PONG,
    Command.NEW_TXN,
    Command.END_TXN,
    Command.WATCH_TOPIC_LIST,
    Command.WATCH_TOPIC_LIST_CLOSE,
)
"""Commands that a broker expects after CONNECT."""

WITH_PAYLOAD = frozenset((Command.SEND, Command.MESSAGE))


class Hostile(NamedTuple):
    """A frame, and what is wrong with it in words."""

    label: str
    data: bytes


@cache
def _sorted_cases(says: tuple[int, ...]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """The cases of commands of the right direction, and those of the others, which seldom get past the first
    look."""
    own = tuple(case for case in cases() if case.number in says)
    return own, tuple(case for case in cases() if case.number not in says)


class Mischief:
    """`says`: commands of the right direction. `limit`: what the peer accepts as one message, in bytes.

    `first_case`: where in the cases of its direction to go on, so that several of these go through all of
    them together; None draws them.
    """

    def __init__(
        self, draws: Draws, says: tuple[int, ...], known: Known, limit: int, first_case: int | None = None
    ) -> None:
        self.kinds: Counter[str] = Counter()
        """The number of frames of each kind that were made."""
        self.inflatable = 0
        """The number of entries that take much more memory than they have bytes."""
        self.cases = 0
        """The number of cases that were made."""
        self._draws = draws
        self._says = says
        self._known = known
        self._limit = limit
        self._next_case = first_case

    def next(self) -> Hostile:
        """The next frame; rarely something that is none, or the beginning of one."""
        draws = self._draws
        roll = draws.below(100)
        if roll < 3 and Command.MESSAGE in self._says:
            return self._run()
        if roll < 65:
            return self._legal()
        if roll < 94:
            return self._case()
        if roll < 96:
            return self._stranger()
        return self._broken()

    def _legal(self) -> Hostile:
        """Nothing is wrong with its form."""
        number = self._draws.choice(self._says)
        command = encode(legal_command(number, self._draws, self._known))
        label = NAMES[number]
        behind = b""
        if number in WITH_PAYLOAD:
            what, behind = entry(self._draws, self._limit)
            self.inflatable += what in RARE
            label = f"{label} ({what})"
        self.kinds[label] += 1
        return Hostile(label, frame(command, behind))

    def _run(self) -> Hostile:
        """Many uniform messages, and one among them that is not."""
        draws = self._draws
        consumer_id, first = draws.choice(self._known["consumer_id"]), draws.choice((0, 5, 126, 16382))
        frames = run_of_messages(draws, consumer_id, first, 8)
        what, payload = entry(draws, self._limit)
        self.inflatable += what in RARE
        frames.insert(draws.below(9), encode_frame(consumer_id, first + draws.below(9), payload))
        self.kinds[f"run of messages ({what})"] += 1
        return Hostile(f"run of messages ({what})", b"".join(frames))

    def _case(self) -> Hostile:
        own, foreign = _sorted_cases(self._says)
        if self._draws.chance(8):
            case = foreign[self._draws.below(len(foreign))]
        elif self._next_case is None:
            case = own[self._draws.below(len(own))]
        else:
            case = own[self._next_case % len(own)]
            self._next_case += 1
        self.cases += 1
        self.kinds[f"field: {case.mutation}"] += 1
        command = encode(mutated_command(case, self._draws, self._known))
        behind = b""
        if case.number in WITH_PAYLOAD:
            what, behind = entry(self._draws, self._limit)
            self.inflatable += what in RARE
        return Hostile(str(case), frame(command, behind))

    def _stranger(self) -> Hostile:
        """A legal command, most likely of the wrong direction."""
        number = self._draws.choice(TYPES)
        self.kinds["any command"] += 1
        return Hostile(NAMES[number], frame(encode(legal_command(number, self._draws, self._known))))

    def _broken(self) -> Hostile:
        name = self._draws.choice(tuple(FRAME_MUTATIONS))
        self.kinds[f"frame: {name}"] += 1
        whole = self._legal()
        return Hostile(f"{whole.label}: {name}", FRAME_MUTATIONS[name](whole.data, self._draws))
