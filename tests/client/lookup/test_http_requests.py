"""Requests over HTTP and their answers as notices, as those of the binary protocol are."""

from pulsar_sansio.client.outputs import RequestAnswered, RequestSent
from pulsar_sansio.model.config import ControlledFailover
from pulsar_sansio.model.errors import ConnectionLost, TimedOut, TopicNotFound
from pulsar_sansio.model.service_url import Address
from tests.canary import CANARY
from tests.client.lookup.http_script import HttpScript, count, response
from tests.client.script import kinds

PATH = "/admin/v2/persistent/public/default/demo/partitions"


def reporting(**options: object) -> HttpScript:
    script = HttpScript(**options)  # type: ignore[arg-type]
    script.client.report_requests(True)
    return script


def answered(script: HttpScript) -> RequestAnswered:
    (found,) = [each for each in script.notices if isinstance(each, RequestAnswered)]
    return found


def test_a_request_and_its_answer_are_reported_while_the_driver_wants_them() -> None:
    script = reporting()
    count(script)
    asked = script.asked()
    script.answer(asked.link, {"partitions": 3})
    assert script.notices == [
        RequestSent(asked.link, 0, f"GET {PATH}"),
        RequestAnswered(asked.link, 0, "HTTP 200", None),
    ]
    assert kinds(script.said()) == ["RequestDone"]
    script.notices.clear()
    script.client.report_requests(False)
    count(script)
    script.answer(script.asked().link, {"partitions": 3})
    assert script.notices == []


def test_a_refusal_has_its_error_and_a_redirect_has_none() -> None:
    script = reporting()
    count(script)
    script.answer(script.asked().link, {}, 307, "Location: http://web:8080/elsewhere")
    redirected = answered(script)
    assert (redirected.command, redirected.error) == ("HTTP 307", None)
    script.notices.clear()
    script.answer(script.asked().link, {"reason": "no such topic"}, 404)
    refused = answered(script)
    assert refused.command == "HTTP 404"
    assert isinstance(refused.error, TopicNotFound)


def test_a_request_without_an_answer_is_answered_by_nothing() -> None:
    script = reporting(operation_timeout=5.0)
    count(script)
    script.asked()
    script.advance(5.0)
    script.drain()
    late = answered(script)
    assert (late.command, type(late.error)) == ("nothing", TimedOut)


def test_a_connection_that_fails_before_the_request_has_no_answer() -> None:
    script = reporting()
    count(script)
    script.lose(script.connecting())
    assert not [each for each in script.notices if isinstance(each, RequestAnswered | RequestSent)]


def test_a_lost_request_is_answered_by_nothing() -> None:
    script = reporting()
    count(script)
    script.lose(script.asked().link)
    lost = answered(script)
    assert (lost.command, type(lost.error)) == ("nothing", ConnectionLost)


def test_the_query_of_a_web_service_is_not_reported() -> None:
    failover = ControlledFailover(f"http://control/cluster?key={CANARY}")
    script = reporting(url="pulsar://home:6650", failover=failover)
    script.advance(0.0)
    asked = script.asked(Address("control", 80))
    assert asked.target == f"/cluster?key={CANARY}"
    script.feed(asked.link, response(b"{}"))
    script.drain()
    assert RequestSent(asked.link, 0, "GET /cluster") in script.notices
