"""The protocol core driven by trio by hand: ten messages sent, received and acknowledged.

    python examples/core_with_trio.py pulsar://localhost:6650      # or pulsar+ssl://

It has a nursery, a task per link that reads, one timer, and a channel of news. `pulsar_trio` does the same
with more care for speed. Copy this example if the shape of `pulsar_trio` does not fit your program.
"""

import ssl
import sys
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

import trio

from pulsar_sansio import Address, Client, ClientConfig, ConsumerSpec, ProducerSpec
from pulsar_sansio import client_outputs as outputs

COUNT = 10

T = TypeVar("T", bound=outputs.Output)


def now() -> int:
    return int(trio.current_time() * 1_000_000_000)


class Driver:
    """Runs one client machine in a nursery. News for the application are in the channel `news`."""

    def __init__(self, url: str, seed: int, nursery: trio.Nursery) -> None:
        self.client = Client(now(), ClientConfig(url), seed=seed)
        self.nursery = nursery
        self.wakers: dict[int, trio.Event] = {}
        self.scopes: dict[int, trio.CancelScope] = {}
        self.ending: set[int] = set()
        self.timer = trio.CancelScope()
        self.put_news, self.news = trio.open_memory_channel[outputs.Output](inf)

    def pump(self) -> None:
        """Do what the machine says. To be called after everything that it was told."""
        while (output := self.client.next_output()) is not None:
            match output:
                case outputs.Connect(link, address, tls_name):
                    self.wakers[link], self.scopes[link] = trio.Event(), trio.CancelScope()
                    self.nursery.start_soon(self.run_link, link, address, tls_name)
                case outputs.Transmit(link):
                    self.wakers[link].set()
                case outputs.Disconnect(link, _):
                    self.ending.add(link)
                    self.wakers[link].set()
                case news:
                    self.put_news.send_nowait(news)
        deadline = self.client.next_deadline()
        self.timer.deadline = inf if deadline is None else deadline / 1e9 + 1e-6

    def tell(self, fact: Callable[..., None], *arguments: object) -> None:
        """Tell the machine a fact about the world."""
        fact(now(), *arguments)
        self.pump()

    async def run_timer(self) -> None:
        while True:
            deadline = self.client.next_deadline()
            with trio.CancelScope(deadline=inf if deadline is None else deadline / 1e9 + 1e-6) as self.timer:
                await trio.sleep_forever()
            self.tell(self.client.handle_deadline)

    async def run_link(self, link: int, address: Address, tls_name: str | None) -> None:
        try:
            with self.scopes[link]:
                stream: trio.abc.Stream = await trio.open_tcp_stream(address.host, address.port)
                if tls_name is not None:
                    context = ssl.create_default_context()
                    stream = trio.SSLStream(stream, context, server_hostname=tls_name, https_compatible=True)
                    await stream.do_handshake()
                async with stream, trio.open_nursery() as nursery:
                    self.tell(self.client.connected, link)
                    nursery.start_soon(self.write, link, stream)
                    async for data in stream:
                        self.tell(self.client.receive_data, link, bytes(data))
                    self.tell(self.client.receive_eof, link)
        except* OSError as group:
            self.tell(self.client.disconnected, link, str(group.exceptions[0]))
        except* trio.BrokenResourceError as group:
            self.tell(self.client.disconnected, link, str(group.exceptions[0]))

    async def write(self, link: int, stream: trio.abc.Stream) -> None:
        while True:
            self.wakers[link] = trio.Event()
            if data := b"".join(self.client.data_to_send(link)):
                await stream.send_all(data)
            elif link in self.ending:
                self.scopes[link].cancel()
                return
            else:
                await self.wakers[link].wait()

    async def wait_for(self, kind: type[T]) -> T:
        """The next news of one kind; others are passed over, failures raised."""
        async for news in self.news:
            if isinstance(news, kind):
                return news
            error = getattr(news, "error", None)
            if error is not None:
                raise error
        raise AssertionError("the channel is never closed")


async def main(url: str, topic: str = "greetings", count: int = COUNT) -> list[bytes]:
    received: list[bytes] = []
    async with trio.open_nursery() as nursery:
        driver = Driver(url, time.time_ns(), nursery)
        nursery.start_soon(driver.run_timer)
        client = driver.client
        consumer = client.subscribe(now(), ConsumerSpec(topic, "example"))
        driver.pump()
        await driver.wait_for(outputs.ConsumerReady)
        producer = client.open_producer(now(), ProducerSpec(topic))
        driver.pump()
        await driver.wait_for(outputs.ProducerReady)
        for number in range(count):
            client.send(now(), producer, b"hello %d" % number, time.time_ns() // 1_000_000)
        driver.pump()
        while len(received) < count:
            await driver.wait_for(outputs.Deliverable)
            messages = client.take(now(), consumer, 100)  # what is left is told again
            client.acknowledge(now(), consumer, messages)
            received += [message.data for message in messages]
            driver.pump()
        print(*received, sep="\n")
        client.close(now(), None)
        driver.pump()
        await driver.wait_for(outputs.RequestDone)
        nursery.cancel_scope.cancel()
    return received


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
