"""The way to a coordinator: it is asked for once, however many questions need it."""

from pulsar_sansio.client.outputs import RequestDone
from pulsar_sansio.client.transactions.transaction_coordinators import MAX_KNOWN, TransactionCoordinators
from pulsar_sansio.model.errors import ServerError
from pulsar_sansio.model.transaction_id import TransactionId
from tests.client.script import URL, Command, frame_lookup

from .transaction_script import TransactionScript


class Scene(TransactionScript):
    """Released transactions of one coordinator, which a client ends that has opened none."""

    def end(self, *numbers: int) -> list[int]:
        return [
            self.client.end_released_transaction(self.now, TransactionId(3, number), commits=True)
            for number in numbers
        ]

    def introduced(self) -> None:
        self.find_topic(self.link)
        self.answer(Command.TC_CLIENT_CONNECT_REQUEST)

    def ended(self, *requests: int) -> None:
        """Answer as many END_TXN, which are all that the client has written."""
        found = self.commands(self.link)
        assert [kind for kind, _ in found] == [Command.END_TXN] * len(requests)
        for _, asked in found:
            self.reply(Command.END_TXN, asked)
        assert self.said() == [RequestDone(request, None) for request in requests]


def test_transactions_that_end_one_after_the_other_share_the_way() -> None:
    """GAP-40"""
    scene = Scene()
    first = scene.end(1)
    scene.link = scene.ready_link()
    scene.introduced()
    scene.ended(*first)
    for number in range(2, 5):
        scene.ended(*scene.end(number))


def test_transactions_that_end_at_the_same_time_share_the_way() -> None:
    """GAP-40"""
    scene = Scene()
    requests = scene.end(1, 2)
    scene.link = scene.ready_link()
    requests += scene.end(3)
    scene.find_topic(scene.link)
    requests += scene.end(4)
    scene.answer(Command.TC_CLIENT_CONNECT_REQUEST)
    scene.ended(*requests)


def test_the_way_is_the_same_once_the_coordinators_are_known() -> None:
    scene = Scene()
    requests = scene.end(1)
    scene.link = scene.ready_link()
    scene.introduced()
    scene.ended(*requests)
    opening = scene.client.begin_transaction(scene.now)
    scene.check_partitions(scene.link, 4)
    kinds = []
    for number in range(4):
        [(kind, asked)] = scene.commands(scene.link)
        if kind == Command.LOOKUP:
            scene.feed(scene.link, frame_lookup(asked.request_id, URL))
            asked = scene.answer(Command.TC_CLIENT_CONNECT_REQUEST)
            kinds.append(asked.tc_id)
            asked = scene.sent(scene.link, Command.NEW_TXN)
        scene.reply(Command.NEW_TXN, asked, txnid_least_bits=number, txnid_most_bits=asked.tc_id)
        assert scene.expect_one(RequestDone).request == opening
        opening = scene.client.begin_transaction(scene.now)
    assert sorted(kinds) == [0, 1, 2], "the client knows the way to coordinator 3"


def test_a_refused_introduction_is_repeated_for_all_questions() -> None:
    scene = Scene()
    requests = scene.end(1, 2)
    scene.link = scene.ready_link()
    scene.find_topic(scene.link)
    scene.answer(Command.TC_CLIENT_CONNECT_REQUEST, ServerError.ServiceNotReady)
    scene.advance(1)
    scene.introduced()
    found = scene.commands(scene.link)
    assert [kind for kind, _ in found] == [Command.END_TXN] * 2
    for _, asked in found:
        scene.reply(Command.END_TXN, asked)
    done = [output.request for output in scene.said() if isinstance(output, RequestDone)]
    assert sorted(done) == requests


def test_a_lost_connection_during_the_introduction() -> None:
    scene = Scene()
    requests = scene.end(1)
    scene.link = scene.ready_link()
    scene.find_topic(scene.link)
    scene.sent(scene.link, Command.TC_CLIENT_CONNECT_REQUEST)
    scene.lose(scene.link)
    scene.said()
    scene.advance(1)
    scene.link = scene.ready_link()
    scene.introduced()
    scene.ended(*requests)


def test_an_abandoned_question_ends_the_way_unless_another_one_needs_it() -> None:
    for others in (0, 1):
        scene = TransactionScript()
        scene.begin(timeout=2.0)
        scene.lose(scene.link)
        scene.said()
        abandoned, *needed = [scene.client.begin_transaction(scene.now) for _ in range(1 + others)]
        scene.link = scene.ready_link()
        scene.client.abandon(scene.now, abandoned)
        scene.find_topic(scene.link)
        if not others:
            assert scene.commands(scene.link) == []
            needed = [scene.client.begin_transaction(scene.now)]
            scene.find_topic(scene.link)
        scene.answer(Command.TC_CLIENT_CONNECT_REQUEST)
        scene.opened(needed[0], 9)


def test_wrong_ids_do_not_fill_the_memory() -> None:
    """The ids of transactions come from other programs."""
    coordinators = TransactionCoordinators(TransactionScript().client._services)
    first = coordinators.numbered(0)
    for number in range(1, MAX_KNOWN):
        coordinators.numbered(number)
    assert coordinators.numbered(0) is first
    for number in range(MAX_KNOWN, 3 * MAX_KNOWN):
        coordinators.numbered(number)
    assert len(coordinators._known) == MAX_KNOWN
    assert coordinators.numbered(0) is not first
