"""`TableCommands`: a table view stands among the consumers, and has commands of its own."""

from typing import Any, cast

import pytest

from pulsar_sansio.client.outputs import RequestFailed, TableViewFailed
from pulsar_sansio.model.config import ConsumerSpec, SubscriptionType, TableViewSpec
from pulsar_sansio.model.errors import ClosedError, InvalidConfiguration, LocalProtocolError
from tests.client.script import Script

SPEC = TableViewSpec("demo")


def test_the_handle_is_that_of_a_consumer_too() -> None:
    script = Script()
    view = script.client.open_table_view(script.now, SPEC)
    assert script.client.table(view) == {}
    assert script.client.consumer_statistics(view).messages_received == 0
    refreshed = script.client.refresh(script.now, view)
    assert refreshed == view + 1
    script.client.close(script.now, view)
    failed = [output for output in script.said() if isinstance(output, RequestFailed | TableViewFailed)]
    assert {type(output) for output in failed} == {RequestFailed, TableViewFailed}


def test_a_consumer_is_no_table_view() -> None:
    script = Script()
    consumer = script.client.subscribe(script.now, ConsumerSpec("demo", "s", SubscriptionType.SHARED))
    for command in (script.client.table, lambda handle: script.client.refresh(script.now + 5, handle)):
        with pytest.raises(LocalProtocolError):
            command(consumer)
        with pytest.raises(LocalProtocolError, match="no table view has the id 77"):
            command(77)
    assert script.client._context.now == script.now


def test_a_closed_client_opens_no_table_view() -> None:
    script = Script()
    view = script.client.open_table_view(script.now, SPEC)
    script.client.close(script.now)
    script.said()
    with pytest.raises(ClosedError, match="the client is closed"):
        script.client.open_table_view(script.now, SPEC)
    with pytest.raises(ClosedError):
        script.client.table(view)


@pytest.mark.parametrize("spec", [None, "demo", ConsumerSpec("demo", "s", SubscriptionType.SHARED)])
def test_anything_but_a_table_view_spec_is_refused(spec: object) -> None:
    script = Script()
    with pytest.raises(InvalidConfiguration, match=f"a TableViewSpec, not {type(spec).__name__}"):
        script.client.open_table_view(script.now, cast(Any, spec))
    assert script.said() == []
