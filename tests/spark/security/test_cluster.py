"""A standalone cluster over TLS with tokens that expire; a worker is killed inside a batch.

Each message arrives once, and no credential is in a log, an event, a plan, a page of the UI or a checkpoint.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from pulsar_sansio import OutgoingMessage
from pulsar_spark.security.access import Access
from pulsar_spark.security.carried_secret import CarriedSecret
from tests.canary import CANARY, has_canary
from tests.security.certificates import Authority
from tests.security.secure_pulsar import PASSWORD, token_of
from tests.spark.scenes.brokers import DEDUPLICATION, OurBroker, RealBroker
from tests.spark.scenes.reading_back import values_of
from tests.spark.scenes.sending import Sender
from tests.spark.scenes.writing import ends, plan
from tests.spark.security.cluster import Cluster, Driver
from tests.spark.security.issuing import issue_tokens
from tests.spark.security.secure_broker import SecureBroker
from tests.trio.security.issuer import LocalIssuer

pytestmark = [pytest.mark.spark, pytest.mark.long]

ISSUER_SECRET = f"issuer-{CANARY}"
KEY_PASSWORD = f"key-{CANARY}"
LIFETIME = 2
"""Seconds that a token is valid: shorter than a run of a query."""

PLACE = "1-0-4"
"""In the second batch, the first task, when some of its messages are sent."""


@contextmanager
def renewed(file: Path) -> Iterator[None]:
    """The file has a token that is valid; another one each half of a token's life."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(LIFETIME / 2):
            write()

    def write() -> None:
        new = file.with_suffix(".new")
        new.write_text(token_of("worker", LIFETIME))
        new.rename(file)

    write()
    thread = threading.Thread(target=renew)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Pipeline:
    """A query from one topic to another of a broker, with messages for two runs."""

    def __init__(self, broker: OurBroker | RealBroker, options: dict[str, str], folder: Path) -> None:
        self._broker = broker
        self._options = {**options, "service.url": broker.tls_url}
        self.folder = folder
        folder.mkdir()
        self.source = f"persistent://{DEDUPLICATION}/cluster-source"
        self.sink = f"persistent://{DEDUPLICATION}/cluster-sink"
        broker.admin.create_partitioned_topic(self.source, 2)
        broker.admin.create_topic(self.sink)
        self._access = Access(
            trust=options["tls.trust"], method="token", token=CarriedSecret(token_of("worker"))
        )
        self.sent: list[bytes] = []

    def send(self, count: int) -> None:
        """Send messages in small entries, to each partition in turn."""
        for number in range(2):
            sender = Sender(self._broker.tls_url, f"{self.source}-partition-{number}", self._access)
            for _ in range(count // 10):
                some = [b"%d" % (len(self.sent) + index) for index in range(5)]
                sender.send([OutgoingMessage(each) for each in some])
                self.sent += some
            sender.close()

    def run(self, driver: Driver) -> None:
        source = {"topic": self.source, "startingOffsets": "earliest", "maxMessagesPerTrigger": "60"}
        sink = {"topic": self.sink, "deliveryGuarantee": "exactly-once", "batchMaxMessages": "4"}
        sink["faults"] = plan(self.folder, {PLACE: "worker"})
        driver.stream({**self._options, **source}, {**self._options, **sink}, self.folder / "checkpoint")

    def written(self) -> list[bytes]:
        return values_of(self._broker, self.sink)


def texts_of(options: dict[str, str], authority: Authority, folder: Path) -> list[dict[str, str]]:
    """Options by which a query carries each secret as a text."""
    own = authority.issue(common_name="worker")
    key = load_pem_private_key(own.key.read_bytes(), None)
    encrypted = folder / "encrypted.key"
    encrypted.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(KEY_PASSWORD.encode()))
    )
    shown = {"tls.certificate": str(own.certificate), "tls.key": str(encrypted)}
    shown["tls.keyPassword"] = KEY_PASSWORD
    return [
        {**options, "auth.method": "token", "auth.token": token_of("worker")},
        {**options, "auth.method": "basic", "auth.user": "worker", "auth.password": PASSWORD},
        {**options, "auth.method": "tls", **shown},
    ]


def search(folder: Path) -> dict[Path, bytes]:
    """Return the contents of all files; none has a credential."""
    files = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert [str(path) for path, content in files.items() if has_canary(content)] == []
    return files


def check_written(files: dict[Path, bytes], topic: str) -> None:
    """Check that the search was not in vain: each kind of file tells of the queries."""
    for kind, text in (("driver.log", topic), ("events", topic), ("pages", "BatchScan pulsar")):
        kept = [content for path, content in files.items() if path.parts[0] == kind]
        assert any(text.encode() in content for content in kept), kind
    assert any(path.name == "stderr" for path in files), "an executor's log"


@pytest.mark.real
def test_a_worker_that_is_killed_inside_a_batch(
    secure_broker: SecureBroker,
    real_broker: RealBroker,
    authority: Authority,
    issuer: LocalIssuer,
    tmp_path: Path,
) -> None:
    issue_tokens(issuer, "worker", ISSUER_SECRET, LIFETIME)
    by_issuer = {
        "tls.trust": str(authority.file),
        "auth.method": "oauth2",
        "auth.oauth2Issuer": issuer.url,
        "auth.oauth2ClientId": "worker",
        "auth.oauth2ClientSecret": ISSUER_SECRET,
    }
    token_file = tmp_path / "token"
    by_file = {
        "tls.trust": str(authority.file),
        "auth.method": "token",
        "auth.tokenFile": str(token_file),
    }
    pipelines = [
        Pipeline(secure_broker, by_issuer, tmp_path / "ours"),
        Pipeline(real_broker, by_file, tmp_path / "real"),
    ]
    with renewed(token_file), Cluster(tmp_path / "cluster") as cluster:
        driver = cluster.driver()
        for pipeline in pipelines:
            pipeline.send(150)
            pipeline.run(driver)
            cluster.add_worker()  # in place of the one that the query has lost
        for pipeline in pipelines:
            pipeline.send(50)
            pipeline.run(driver)
        counts = {
            "service.url": secure_broker.url,
            "topic": pipelines[0].sink,
            "tls.trust": str(authority.file),
        }
        for options in texts_of(counts, authority, tmp_path):
            assert driver.count(options) == len(pipelines[0].sent)
        driver.stop()
        assert cluster.killed_workers() == len(pipelines)
    for pipeline in pipelines:
        assert ends(pipeline.folder) == {PLACE}
        assert sorted(pipeline.written()) == sorted(pipeline.sent)
        assert search(pipeline.folder / "checkpoint")
    check_written(search(tmp_path / "cluster"), pipelines[0].source)
