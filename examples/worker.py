"""A worker: a service that handles messages until it is told to stop, and then stops well.

    python examples/worker.py --topic orders --subscription billing

SIGTERM or SIGINT (Ctrl-C) stops it: it takes nothing new, finishes the messages that are being handled, waits
until the broker has confirmed their acknowledgements, and exits with 0. Handlers that are not finished after
`--grace` seconds, or when a second signal comes, are cancelled, and the exit code is 1: their messages are
delivered again, to another worker.

Settings are options, or environment variables: PULSAR_SERVICE_URL, TOPIC, SUBSCRIPTION, CONCURRENCY, GRACE
and WORK.
"""

import argparse
import os
import signal
import sys

import trio

from pulsar_trio import (
    DeadLetter,
    DeadLetterPolicy,
    Message,
    NegativeAcknowledge,
    OnFailure,
    open_client,
)


def settings(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Handle the messages of a topic until SIGTERM.")
    env = os.environ.get
    parser.add_argument("--url", default=env("PULSAR_SERVICE_URL", "pulsar://localhost:6650"))
    parser.add_argument("--topic", default=env("TOPIC", "orders"))
    parser.add_argument("--subscription", default=env("SUBSCRIPTION", "workers"))
    parser.add_argument("--concurrency", type=int, default=env("CONCURRENCY", "10"))
    parser.add_argument("--grace", type=float, default=env("GRACE", "20"), help="seconds to finish in")
    parser.add_argument("--work", type=float, default=env("WORK", "0.1"), help="seconds for each message")
    return parser.parse_args(arguments)


class Worker:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.stop = trio.Event()
        self.limit = trio.CancelScope()
        """Around everything: cancelled when the time of grace is over."""

    async def handle(self, message: Message) -> None:
        """Handle one message; an exception of this goes to `on_failure`."""
        number = int(message.data)
        print("begin", number, flush=True)
        await trio.sleep(self.options.work)
        print("handled", number, flush=True)

    def on_failure(self, message: Message, error: Exception) -> OnFailure:
        """A message that can never be handled is a dead letter; any other is tried again."""
        if isinstance(error, ValueError):
            return DeadLetter({"error": type(error).__name__})
        return NegativeAcknowledge()

    async def watch_signals(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            task_status.started()
            async for number in signals:
                if self.stop.is_set():
                    self.limit.cancel()
                print(f"{signal.Signals(number).name}: stopping", file=sys.stderr, flush=True)
                self.stop.set()
                self.limit.deadline = trio.current_time() + self.options.grace

    async def consume(self) -> None:
        options = self.options
        async with (
            open_client(options.url) as client,
            client.subscribe(
                options.topic,
                options.subscription,
                initial_position="earliest",
                dead_letter=DeadLetterPolicy(max_redeliver_count=5),
                batch_index_acknowledgement=True,  # a batch that is half done is not redelivered whole
            ) as consumer,
        ):
            print("ready", flush=True)
            await consumer.run(
                self.handle, concurrency=options.concurrency, stop=self.stop, on_failure=self.on_failure
            )

    async def run(self) -> int:
        with self.limit:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.watch_signals)
                await self.consume()
                nursery.cancel_scope.cancel()
        if self.limit.cancelled_caught:
            print("not finished in time: messages are delivered again", file=sys.stderr)
            return 1
        return 0


async def main(arguments: list[str]) -> int:
    return await Worker(settings(arguments)).run()


if __name__ == "__main__":
    sys.exit(trio.run(main, sys.argv[1:]))
