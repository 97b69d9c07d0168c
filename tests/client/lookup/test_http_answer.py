"""The error that the status of an answer over HTTP stands for."""

import json

import pytest

from pulsar_sansio import AuthenticationError, AuthorizationError, PulsarError, TopicNotFound
from pulsar_sansio.client.lookup.http_answer import MAX_REASON, HttpAnswer
from pulsar_sansio.model.http_url import HttpUrl


def refusal(status: int, body: bytes) -> PulsarError:
    return HttpAnswer(HttpUrl.parse("http://web:8080/x"), status, "", body).refusal()


@pytest.mark.parametrize("body", [json.dumps({"reason": "x" * 100_000}).encode(), b"x" * 100_000])
def test_an_error_shows_a_bounded_part_of_an_answer(body: bytes) -> None:
    text = str(refusal(404, body))
    assert "x" * MAX_REASON in text
    assert len(text) < MAX_REASON + 100


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (404, "Topic not found t", TopicNotFound),
        (401, "Authentication required", AuthenticationError),
        (401, "Unauthorized to validateTopicOperation", AuthorizationError),
        (403, "no permission", AuthorizationError),
    ],
)
def test_a_refusal_has_the_type_of_its_status(status: int, reason: str, kind: type[PulsarError]) -> None:
    error = refusal(status, json.dumps({"reason": reason}).encode())
    assert type(error) is kind
    assert reason in str(error)
