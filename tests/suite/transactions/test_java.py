"""Transactions of the Java client: this project's broker and a real one give it one experience."""

import subprocess
from pathlib import Path

import pytest
import trio

from tests.real_pulsar.jars import jars, java
from tests.suite.brokers import BrokerUnderTest

pytestmark = [pytest.mark.real, pytest.mark.slow]

PROGRAM = Path(__file__).parents[2] / "interop" / "java" / "Transactions.java"

CASES = {
    "commit": "before= commit=done after=inside",
    "abort": "abort=done again=input count=1 output=plain",
    "order": "third=done second=done before= first=done after=1,3,4",
    "timeout": "again=after,input commit=refused",
    "conflict": "first=done second=TransactionConflictException abort=done commit=done "
    "third=TransactionConflictException abort=done left=",
    "cumulative": "first=done second=TransactionConflictException abort=done late=done commit=done left=4",
    "cumulative-abort": "ack=done abort=done again=",
    "exclusive-abort": "ack=done abort=done again=0,1,2",
    "batch": "abort=done commit=done after=c0,c1,c2,c3",
    "batch-index": "one=done two=done commit=done abort=done left=1,2,3",
    "chunks": "before= commit=done length=1000",
    "partitions": "before= commit=done after=0,1,2,3,4,5 commit=done left=",
    "pipeline": "transformed=150 left=50",
    "ended": "commit=done commit=InvalidTxnStatusException abort=InvalidTxnStatusException",
    "reader": "abort=done first=before more=false more=false commit=done more=true next=open more=false",
}
"""Case -> what the client observes."""


async def test_the_java_client_has_its_transactions(broker: BrokerUnderTest, topic: str) -> None:
    await broker.create_partitioned_topic(f"{topic}-partitions-parts", 3)
    command = [java(), "-cp", f"{jars()}/*", str(PROGRAM), broker.url, topic, *CASES]
    done = await trio.run_process(command, capture_stdout=True, stderr=subprocess.DEVNULL, check=False)
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    assert {line[1]: line[2] for line in lines if line[0] == "case"} == CASES
