"""`OpenHandles`: the error of a handle that is not open depends on what became of it."""

from typing import Any, cast

import pytest

from pulsar_sansio.client.commands.open_handles import OpenHandles
from pulsar_sansio.client.outputs import Output
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.errors import ClosedError, LocalProtocolError, TopicTerminated


def handles() -> tuple[OpenHandles, Context[Output]]:
    context: Context[Output] = Context(0, seed=1)
    return OpenHandles(context), context


def test_an_open_handle_gives_its_machine_by_its_kind() -> None:
    opened, context = handles()
    producer, consumer, view = cast(Any, object()), cast(Any, object()), cast(Any, object())
    first, second = context.new_id(), context.new_id()
    opened.producers[first] = producer
    opened.consumers[second] = consumer
    opened.views[second] = view
    assert opened.producer(first) is opened.machine(first) is producer
    assert opened.consumer(second) is opened.machine(second) is consumer
    assert opened.view(second) is view


@pytest.mark.parametrize("kind", ["producer", "consumer", "view"])
def test_a_handle_of_another_kind_is_closed_for_this_kind(kind: str) -> None:
    opened, context = handles()
    handle = context.new_id()
    others = {"producer": opened.consumers, "consumer": opened.producers, "view": opened.consumers}
    cast(Any, others[kind])[handle] = object()
    with pytest.raises(ClosedError):
        getattr(opened, kind)(handle)


def test_a_number_that_was_never_given_is_the_callers_mistake() -> None:
    opened, context = handles()
    context.new_id()
    for number in (0, -1, 2):
        with pytest.raises(LocalProtocolError, match=f"no producer or consumer has the id {number}"):
            opened.machine(number)
        with pytest.raises(LocalProtocolError, match=f"no table view has the id {number}") as caught:
            opened.view(number)
        assert not isinstance(caught.value, ClosedError)


def test_a_handle_that_has_ended_is_closed_with_its_cause() -> None:
    opened, context = handles()
    handle = context.new_id()
    assert opened.machine(handle) is None
    opened.closed.add(handle, TopicTerminated("no more"))
    with pytest.raises(ClosedError, match=rf"producer {handle} is closed: .*no more") as caught:
        opened.producer(handle)
    assert isinstance(caught.value.__cause__, TopicTerminated)


def test_after_the_client_every_handle_is_closed() -> None:
    opened, _ = handles()
    opened.closed_client = True
    with pytest.raises(ClosedError, match="consumer 77 is closed"):
        opened.consumer(77)


def test_a_closed_client_opens_nothing_more() -> None:
    opened, _ = handles()
    opened.check_open()
    opened.closing = True
    with pytest.raises(ClosedError, match="the client is closed"):
        opened.check_open()
