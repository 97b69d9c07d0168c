"""Each job over TLS, with credentials that the broker demands."""

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from pulsar_spark.jobs.archive import archive
from pulsar_spark.jobs.audit import COLUMNS, audit
from pulsar_spark.jobs.redrive import redrive
from pulsar_spark.jobs.replay import replay
from pulsar_spark.security.access import Access
from pulsar_spark.security.carried_secret import CarriedSecret
from tests.security.secure_pulsar import PASSWORD, token_of
from tests.spark.jobs.test_message_jobs import keyed, letters
from tests.spark.scenes.sending import Sender
from tests.spark.security.issuing import issue_tokens
from tests.spark.security.secure_broker import SecureBroker
from tests.trio.security.issuer import LocalIssuer

pytestmark = pytest.mark.spark

SECRET = "issuer's secret"


def send(broker: SecureBroker, topic: str, messages: list[object]) -> None:
    access = Access(trust=broker.trust, method="token", token=CarriedSecret(token_of("worker")))
    sender = Sender(broker.url, topic, access)
    sender.send(messages)  # type: ignore[arg-type]
    sender.close()


def test_archive_replay_and_audit(
    spark: SparkSession,
    secure_broker: SecureBroker,
    issuer: LocalIssuer,
    topic: str,
    deduplicated_topic: str,
    tmp_path: Path,
) -> None:
    """By OAuth 2.0, with the broker found over HTTPS, by a token file and by a password."""
    issue_tokens(issuer, "worker", SECRET, lifetime=60)
    token = tmp_path / "token"
    token.write_text(token_of("worker"))
    tls = {"tls.trust": secure_broker.trust}
    by_issuer = {
        **tls,
        "auth.method": "oauth2",
        "auth.oauth2Issuer": issuer.url,
        "auth.oauth2ClientId": "worker",
        "auth.oauth2ClientSecret": SECRET,
    }
    by_file = {**tls, "auth.method": "token", "auth.tokenFile": str(token)}
    by_password = {**tls, "auth.method": "basic", "auth.user": "worker", "auth.password": PASSWORD}
    send(secure_broker, topic, [*keyed(range(50))])

    path = str(tmp_path / "archive")
    options = {**by_issuer, "service.url": secure_broker.https_url, "topic": topic}
    assert archive(spark, options, path).messages == 50
    done = replay(spark, path, secure_broker.url, write_id="again", topic=deduplicated_topic, access=by_file)
    assert done.messages == 50

    def side(name: str) -> DataFrame:
        options = {**by_password, "service.url": secure_broker.url, "topic": name}
        return spark.read.format("pulsar").options(**options, columns=",".join(COLUMNS)).load()

    found = audit(side(topic), side(deduplicated_topic))
    assert (found.sent, found.received, found.clean) == (50, 50, True)


@pytest.mark.breaks("INV-C4", why="the subscription is held without being read, and acknowledged by position")
def test_redrive_moves_letters_and_acknowledges_them(
    spark: SparkSession, secure_broker: SecureBroker, deduplicated_topic: str, tmp_path: Path
) -> None:
    """Source, sink and the link of the driver itself show a token."""
    dead = f"{deduplicated_topic}-s-DLQ"
    send(secure_broker, dead, [*letters(deduplicated_topic, ["timeout", "parse"])])
    access = {"tls.trust": secure_broker.trust, "auth.method": "token", "auth.token": token_of("worker")}
    done = redrive(
        spark, secure_broker.url, dead, str(tmp_path / "book"), subscription="people", access=access
    )
    assert (done.moved, done.left) == (2, 0)
    stats = secure_broker.admin.stats(dead)["subscriptions"]["people"]
    assert stats["msgBacklog"] == 0
