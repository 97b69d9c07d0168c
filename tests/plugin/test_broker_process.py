"""`BrokerProcess` by itself: what is left of a start that is interrupted, and a broker that ends."""

import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from pulsar_trio_pytest import BrokerHasEnded, BrokerProcess
from pulsar_trio_pytest.control import ControlClient


@pytest.fixture
def interrupted_soon() -> Iterator[None]:
    """Raise `KeyboardInterrupt` long before a broker can have started."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("interrupted_soon")
def test_a_start_that_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        BrokerProcess()
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() <= threads


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[", b"HTTP/"])
def test_an_answer_that_ends_in_the_middle_tells_how_the_broker_ended(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted:
                accepted.recv(65536)
                accepted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        control = ControlClient(f"http://127.0.0.1:{server.getsockname()[1]}", lambda: "exit code 9")
        with pytest.raises(BrokerHasEnded, match="exit code 9"):
            control.ask("GET", "/test/v1/faults")
        thread.join()
