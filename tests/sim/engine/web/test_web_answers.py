"""Answers of a broker's web server: lookups, numbers of partitions, lists of topics, and refusals."""

import json
from typing import Any

import pytest

from pulsar_sansio.broker import Broker, BrokerConfig, MemoryStore, OtherBroker
from pulsar_sansio.model.errors import ServiceNotReady
from pulsar_sim.engine.web.web_answers import WebAnswer, answer_of, web_name

HERE = "pulsar://broker-0:6650"
THERE = "pulsar://broker-1:6650"
LOOKUP = "/lookup/v2/topic/persistent/public/default/t"
PARTITIONS = "/admin/v2/persistent/public/default/p/partitions"
TOPICS = "/admin/v2/namespaces/public/default/topics"


def broker(owner: OtherBroker | ServiceNotReady | None = None) -> Broker:
    """A broker with the topics n and p, which has two partitions. `owner`: the answer to which other broker
    serves a topic; None is a broker that serves all."""

    def serves(topic: str, authoritative: bool) -> OtherBroker | None:
        if isinstance(owner, ServiceNotReady):
            raise owner
        return owner

    config = BrokerConfig(service_url=HERE)
    made = Broker(0, config, MemoryStore().load(), seed=1, wall_time=0, owner=serves if owner else None)
    made.topic_administration.create_partitioned_topic(0, "p", 2)
    made.topic_administration.create_topic(0, "non-persistent://public/default/n")
    return made


def value(answer: WebAnswer) -> tuple[int, Any]:
    return answer.status, json.loads(answer.body)


def test_a_lookup_leads_here_to_another_broker_or_is_redirected() -> None:
    target = f"{LOOKUP}?authoritative=false"
    assert value(answer_of(broker(), target)) == (200, {"brokerUrl": HERE})
    other = OtherBroker(THERE)
    assert value(answer_of(broker(other), target)) == (200, {"brokerUrl": THERE})


@pytest.mark.parametrize("authoritative", [False, True])
def test_a_redirect_names_the_web_server_of_the_other_broker(authoritative: bool) -> None:
    elsewhere = OtherBroker(THERE, redirect=True, authoritative=authoritative)
    answer = answer_of(broker(elsewhere), f"{LOOKUP}?authoritative=false&listenerName=x")
    assert (answer.status, answer.body) == (307, b"")
    there = "true" if authoritative else "false"
    assert answer.location == f"http://broker-1:8080{LOOKUP}?authoritative={there}"


def test_a_topic_that_no_broker_serves_now() -> None:
    answer = answer_of(broker(ServiceNotReady("not now")), f"{LOOKUP}?authoritative=true")
    assert value(answer) == (503, {"reason": "not now"})


@pytest.mark.parametrize(
    ("topic", "create", "found"),
    [
        ("p", "false", (200, {"partitions": 2})),
        ("none", "true", (200, {"partitions": 0})),
        ("none", "false", (404, {"reason": "Topic persistent://public/default/none does not exist"})),
    ],
)
def test_numbers_of_partitions(topic: str, create: str, found: tuple[int, Any]) -> None:
    target = PARTITIONS.replace("/p/", f"/{topic}/")
    assert value(answer_of(broker(), f"{target}?checkAllowAutoCreation={create}")) == found


PERSISTENT = [f"persistent://public/default/p-partition-{index}" for index in range(2)]
NON_PERSISTENT = ["non-persistent://public/default/n"]


@pytest.mark.parametrize(
    ("mode", "names"),
    [("PERSISTENT", PERSISTENT), ("NON_PERSISTENT", NON_PERSISTENT), ("ALL", [*NON_PERSISTENT, *PERSISTENT])],
)
def test_topics_of_a_namespace(mode: str, names: list[str]) -> None:
    status, found = value(answer_of(broker(), f"{TOPICS}?mode={mode}"))
    assert (status, sorted(found)) == (200, sorted(names))


@pytest.mark.parametrize("target", ["/", "/admin/v2/clusters", "/lookup/v2/topi", f"{PARTITIONS}/more"])
def test_a_path_that_no_client_asks_for(target: str) -> None:
    with pytest.raises(ValueError, match="no client asks for"):
        answer_of(broker(), target)


def test_a_web_server_has_a_name_of_its_own() -> None:
    assert web_name("broker-0") == "web-of-broker-0"
