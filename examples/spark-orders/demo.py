"""The pipeline of orders.py at work, with one kill of its driver in the middle: `make demo-spark`.

The demo starts the embedded broker, sends orders, and runs orders.py as a process of its own. It kills that
process with SIGKILL half-way and starts it again. Then it checks the results: no order is lost, none is
counted twice, and no result is there twice.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import trio
from orders import ORDERS, TOTALS

from pulsar_trio import Client, EmbeddedBroker, open_broker, open_client

HERE = Path(__file__).resolve().parent

CUSTOMERS = 50
PARTITIONS = 2
RATE = 2500
"""Orders a second."""

PORTION = 250
"""Orders sent at a time, ten times a second."""

MOST = 2000
"""Orders in a micro-batch, about: so that there are some, and one is cut short by the kill."""

LOOK_EVERY = 2.0
"""Seconds between two lines."""

STARTS = 4
"""The most starts of the driver each time, if it ends by itself. On a busy machine a limit of Spark's may run
out."""

PATIENCE = 900.0
"""Seconds after which something must be wrong, on the busiest machine."""


class Totals:
    """The totals that the results have shown so far."""

    def __init__(self) -> None:
        self.orders: dict[str, int] = {}
        self.cents: dict[str, int] = {}
        self.results = 0
        self.repeated = 0
        """Results that say no more than an earlier one: the query wrote them twice."""

    def take(self, data: bytes) -> None:
        result = json.loads(data)
        customer = result["customer"]
        self.results += 1
        if result["orders"] <= self.orders.get(customer, 0):
            self.repeated += 1
        self.orders[customer] = result["orders"]
        self.cents[customer] = result["cents"]

    @property
    def counted(self) -> int:
        return sum(self.orders.values())


def order(number: int) -> dict[str, object]:
    return {"customer": f"c-{number % CUSTOMERS}", "cents": number * 7919 % 10_000}


async def send_orders(client: Client, count: int) -> None:
    async with client.create_producer(ORDERS) as producer:
        start = trio.current_time()
        for first in range(0, count, PORTION):
            orders = [
                json.dumps(order(number)).encode() for number in range(first, min(first + PORTION, count))
            ]
            await producer.send_many(orders)
            await trio.sleep_until(start + (first + PORTION) / RATE)


async def read_totals(client: Client, totals: Totals) -> None:
    async with client.create_reader(TOTALS, start="earliest") as reader:
        async for message in reader:
            totals.take(message.data)


@contextmanager
def driver(url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """orders.py, until the block ends: then it is killed, with the JVM it has started."""
    command = [
        sys.executable,
        str(HERE / "orders.py"),
        "--url",
        url,
        "--checkpoint",
        str(folder / "checkpoint"),
    ]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--most", str(MOST)], stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def drive(count: int, totals: Totals, url: str, folder: Path, linger: float = 0.0) -> None:
    """A driver until so many orders are in the results, and `linger` seconds more. One that ends by itself is
    started again, as whatever keeps services running would do."""
    for _ in range(STARTS):
        with driver(url, folder) as process:
            if await until(count, totals, process):
                await trio.sleep(linger)
                return
    raise SystemExit(f"the driver ended by itself {STARTS} times:\n{(folder / 'log').read_text()[-3000:]}")


async def until(count: int, totals: Totals, process: subprocess.Popen[bytes]) -> bool:
    """Wait until so many orders are in the results, and say now and then how many are; False if the driver
    ends before."""
    shown, next_look = totals.counted, trio.current_time() + LOOK_EVERY
    while totals.counted < count:
        if process.poll() is not None:
            return False
        await trio.sleep(0.05)
        if trio.current_time() >= next_look and totals.counted > shown:
            shown, next_look = totals.counted, trio.current_time() + LOOK_EVERY
            print(f"  {totals.counted:,} orders counted, in {totals.results:,} results", flush=True)
    return True


async def run(client: Client, broker: EmbeddedBroker, count: int, folder: Path) -> Totals:
    totals = Totals()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send_orders, client, count)
        nursery.start_soon(read_totals, client, totals)
        print(f"{count:,} orders of {CUSTOMERS} customers, {RATE:,} a second; Spark starts …", flush=True)
        await drive(count // 3, totals, broker.url, folder)
        print(f"driver killed, with {totals.counted:,} orders counted; started again …", flush=True)
        await drive(count, totals, broker.url, folder, linger=2.0)  # for a result too many, if there is one
        nursery.cancel_scope.cancel()
    return totals


async def demo(count: int) -> int:
    """The exit code: 0 if the count is right."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="spark-orders-") as name, trio.fail_after(PATIENCE):
        async with open_broker() as broker, open_client(broker.url) as client:
            broker.set_policy("public/default", "deduplication", True)
            broker.create_partitioned_topic(ORDERS, PARTITIONS)
            broker.create_topic(TOTALS)
            totals = await run(client, broker, count, Path(name))
    true = Totals()
    for number in range(count):
        customer, cents = str(order(number)["customer"]), int(str(order(number)["cents"]))
        true.orders[customer] = true.orders.get(customer, 0) + 1
        true.cents[customer] = true.cents.get(customer, 0) + cents
    lost = sum(max(0, true.orders[each] - totals.orders.get(each, 0)) for each in true.orders)
    doubled = sum(max(0, totals.orders.get(each, 0) - true.orders[each]) for each in true.orders)
    print(
        f"{count:,} orders, {totals.results:,} results, one kill of the driver: lost {lost}, "
        f"counted twice {doubled}, results written twice {totals.repeated}, "
        f"amounts {'right' if totals.cents == true.cents else 'WRONG'} ({time.monotonic() - started:.0f} s)"
    )
    return int(bool(lost or doubled or totals.repeated or totals.cents != true.cents))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Orders through Spark, exactly once, with a kill.")
    parser.add_argument("--orders", type=int, default=40_000)
    sys.exit(trio.run(demo, parser.parse_args().orders))
