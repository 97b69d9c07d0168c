"""Serve a link in the background while a test waits, so that it answers the broker's probes and is not taken
for dead."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_spark.link import Link


@contextmanager
def served(link: Link, dies_after: float = 60.0) -> Iterator[None]:
    """Serve the link while the block lasts. After `dies_after` seconds its sockets are closed."""
    over = threading.Event()
    end = time.monotonic() + dies_after

    def serve() -> None:
        while not over.is_set():
            link.serve(0.02)
            if time.monotonic() > end:
                link.drop()
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
