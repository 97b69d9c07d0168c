"""The protocol core driven by blocking calls in a thread: ten values sent, received and acknowledged.

    python examples/core_with_threads.py pulsar://localhost:6650

A `Driver` thread waits in `select` for sockets and for the next deadline, and writes with calls that block
for as long as a socket is full. Other threads give it commands through a queue: only one touches the machine.
"""

import queue
import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from pulsar_sansio import Client, ClientConfig, ConsumerSpec, ProducerSpec, ServiceUrl
from pulsar_sansio import client_outputs as outputs
from pulsar_sansio.schemas import STRING

COUNT = 10
T = TypeVar("T", bound=outputs.Output)


class Driver(threading.Thread):
    """Runs one client machine. News for the application are in the queue `news`."""

    def __init__(self, url: str) -> None:
        super().__init__(name="pulsar", daemon=True)
        if ServiceUrl.parse(url).tls:
            raise ValueError("this example has no TLS; core_with_asyncio.py has")
        self.client = Client(time.monotonic_ns(), ClientConfig(url), seed=time.time_ns())
        self.news: queue.Queue[outputs.Output] = queue.Queue()
        self.commands: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], Any]] = queue.SimpleQueue()
        self.waker, self.wakes = socket.socketpair()
        self.sockets: dict[int, socket.socket] = {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wakes, selectors.EVENT_READ)

    def call(self, command: Callable[..., Any], *arguments: object) -> Any:
        """Give the machine a command from another thread; gives its result."""
        answer: Future[Any] = Future()
        self.commands.put((answer, command, arguments))
        self.waker.send(b"x")
        return answer.result()

    def wait_for(self, kind: type[T]) -> T:
        """The next news of one kind; others are passed over, failures raised."""
        while not isinstance(news := self.news.get(timeout=60), kind):
            if (error := getattr(news, "error", None)) is not None:
                raise error
        return news

    def run(self) -> None:
        while True:
            self.pump()
            deadline = self.client.next_deadline()
            wait = None if deadline is None else max(0, deadline - time.monotonic_ns()) / 1e9
            for key, _ in self.selector.select(wait):
                if key.fileobj is self.wakes:
                    self.wakes.recv(1)
                    self.obey(*self.commands.get())
                else:
                    self.read(key.data)
            self.client.handle_deadline(time.monotonic_ns())

    def obey(self, answer: Future[Any], command: Callable[..., Any], arguments: Any) -> None:
        try:
            answer.set_result(command(time.monotonic_ns(), *arguments))
        except Exception as error:
            answer.set_exception(error)

    def pump(self) -> None:
        """Do what the machine says."""
        while (output := self.client.next_output()) is not None:
            match output:
                case outputs.Connect(link, address, None):
                    self.connect(link, address)
                case outputs.Transmit(link):
                    self.write(link)
                case outputs.Disconnect(link, _):
                    self.write(link)
                    self.close(link)
                case news:
                    self.news.put(news)

    def connect(self, link: int, address: tuple[str, int]) -> None:
        try:
            sock = socket.create_connection(address, timeout=10)
        except OSError as error:
            self.client.disconnected(time.monotonic_ns(), link, str(error))
            return
        self.sockets[link] = sock
        self.selector.register(sock, selectors.EVENT_READ, link)
        self.client.connected(time.monotonic_ns(), link)

    def read(self, link: int) -> None:
        try:
            data = self.sockets[link].recv(65536)
        except OSError as error:
            self.close(link)
            self.client.disconnected(time.monotonic_ns(), link, str(error))
        else:
            if data:
                self.client.receive_data(time.monotonic_ns(), link, data)
            else:
                self.client.receive_eof(time.monotonic_ns(), link)
        self.pump()

    def write(self, link: int) -> None:
        data = b"".join(self.client.data_to_send(link))
        if data and link in self.sockets:
            with suppress(OSError):  # the next read meets it too, and reports it
                self.sockets[link].sendall(data)

    def close(self, link: int) -> None:
        if link in self.sockets:
            sock = self.sockets.pop(link)
            self.selector.unregister(sock)
            sock.close()


def main(url: str, topic: str = "greetings", count: int = COUNT) -> list[str]:
    driver = Driver(url)
    driver.start()
    client = driver.client
    consumer = driver.call(client.subscribe, ConsumerSpec(topic, "example", schema=STRING))
    driver.wait_for(outputs.ConsumerReady)
    producer = driver.call(client.open_producer, ProducerSpec(topic, schema=STRING))
    driver.wait_for(outputs.ProducerReady)
    for number in range(count):
        driver.call(client.send, producer, STRING.encode(f"hello {number}"), time.time_ns() // 1_000_000)
    received: list[str] = []
    while len(received) < count:
        driver.wait_for(outputs.Deliverable)
        messages = driver.call(client.take, consumer, 100)  # what is left is told again
        received += [str(message.value) for message in messages]
        driver.call(client.acknowledge, consumer, messages)
    print(*received, sep="\n")
    driver.call(client.close, None)
    driver.wait_for(outputs.RequestDone)
    return received


if __name__ == "__main__":
    main(sys.argv[1])
