"""The protocol core driven by asyncio: ten values sent, received and acknowledged.

    python examples/core_with_asyncio.py pulsar://localhost:6650
    PULSAR_TOKEN=… python examples/core_with_asyncio.py pulsar+ssl://localhost:6651

The core never waits. It is told what happened and what time it is, and says what to do; this file does it
with asyncio's transports. `Driver` is the whole adapter.
"""

import asyncio
import os
import ssl
import sys
import time
from collections.abc import Callable
from typing import TypeVar, cast

from pulsar_sansio import Address, Client, ClientConfig, ConsumerSpec, ProducerSpec, Secret
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.schemas import STRING

COUNT = 10

T = TypeVar("T", bound=outputs.Output)


class Driver:
    """Runs one client machine. News for the application are in the queue `news`."""

    def __init__(self, url: str, seed: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.token = Secret(os.environ.get("PULSAR_TOKEN", ""))
        config = ClientConfig(url, authentication_method="token" if self.token else None)
        self.client = Client(self.now(), config, seed=seed)
        self.transports: dict[int, asyncio.Transport] = {}
        self.ends: dict[int, asyncio.Future[None]] = {}  # link -> done when its socket is closed
        self.connecting: dict[int, asyncio.Task[None]] = {}
        self.news: asyncio.Queue[outputs.Output] = asyncio.Queue()
        self.timer: asyncio.TimerHandle | None = None

    def now(self) -> int:
        return int(self.loop.time() * 1_000_000_000)

    def pump(self) -> None:
        """Do what the machine says. To be called after everything that it was told."""
        while (output := self.client.next_output()) is not None:
            match output:
                case outputs.Connect(link, address, tls_name):
                    self.connecting[link] = self.loop.create_task(self.connect(link, address, tls_name))
                case outputs.CredentialsWanted(link):
                    self.client.provide_credentials(self.now(), link, self.token)
                case outputs.Transmit(link):
                    self.write(link)
                case outputs.Disconnect(link, _):
                    self.write(link)
                    if link in self.transports:
                        self.transports.pop(link).close()
                    else:
                        self.connecting[link].cancel()
                case news:
                    self.news.put_nowait(news)
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if (deadline := self.client.next_deadline()) is not None:
            self.timer = self.loop.call_at(deadline / 1e9 + 1e-6, self.tell, self.client.handle_deadline)

    def tell(self, fact: Callable[..., None], *arguments: object) -> None:
        """Tell the machine a fact about the world."""
        fact(self.now(), *arguments)
        self.pump()

    def write(self, link: int) -> None:
        if (chunks := self.client.data_to_send(link)) and link in self.transports:
            self.transports[link].writelines(chunks)

    async def connect(self, link: int, address: Address, tls_name: str | None) -> None:
        tls = None if tls_name is None else ssl.create_default_context()
        try:
            await self.loop.create_connection(
                lambda: Link(self, link), address.host, address.port, ssl=tls, server_hostname=tls_name
            )
        except OSError as error:
            self.tell(self.client.disconnected, link, str(error))

    async def wait_for(self, kind: type[T]) -> T:
        """The next news of one kind; others are passed over, failures raised."""
        while not isinstance(news := await self.news.get(), kind):
            if (error := getattr(news, "error", None)) is not None:
                raise error
        return news


class Link(asyncio.Protocol):
    """One connection: bytes in, and the end of it."""

    def __init__(self, driver: Driver, link: int) -> None:
        self.driver = driver
        self.link = link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.driver.transports[self.link] = cast(asyncio.Transport, transport)
        self.driver.ends[self.link] = self.driver.loop.create_future()
        self.driver.tell(self.driver.client.connected, self.link)

    def data_received(self, data: bytes) -> None:
        self.driver.tell(self.driver.client.receive_data, self.link, data)

    def eof_received(self) -> None:
        self.driver.tell(self.driver.client.receive_eof, self.link)

    def connection_lost(self, error: Exception | None) -> None:
        self.driver.ends.pop(self.link).set_result(None)
        if self.driver.transports.pop(self.link, None) is not None:
            self.driver.tell(self.driver.client.disconnected, self.link, str(error or "closed by the peer"))


async def main(url: str, topic: str = "greetings", count: int = COUNT) -> list[str]:
    driver = Driver(url, seed=time.time_ns())
    client = driver.client
    consumer = client.subscribe(driver.now(), ConsumerSpec(topic, "example", schema=STRING))
    driver.pump()
    await driver.wait_for(outputs.ConsumerReady)
    producer = client.open_producer(driver.now(), ProducerSpec(topic, schema=STRING))
    driver.pump()
    await driver.wait_for(outputs.ProducerReady)

    for number in range(count):
        client.send(driver.now(), producer, STRING.encode(f"hello {number}"), time.time_ns() // 1_000_000)
    driver.pump()
    received: list[str] = []
    while len(received) < count:
        await driver.wait_for(outputs.Deliverable)
        messages = client.take(driver.now(), consumer, 100)  # what is left is told again
        client.acknowledge(driver.now(), consumer, messages)
        received += [str(message.value) for message in messages]
        driver.pump()
    print(*received, sep="\n")

    client.close(driver.now(), None)
    driver.pump()
    await driver.wait_for(outputs.RequestDone)
    await asyncio.gather(*driver.ends.values())  # a transport is closed some turns of the loop later
    return received


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
