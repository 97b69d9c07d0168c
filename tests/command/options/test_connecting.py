"""A command that cannot connect says so at once, and goes on asking."""

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from tests.patience import PATIENCE

COMMAND = [sys.executable, "-m", "pulsar_trio_command"]

COMMANDS = [
    ["produce", "t", "--count", "3"],
    ["consume", "t", "--subscription", "s"],
    ["demo", "--count", "10"],
]


@contextmanager
def running(*arguments: str) -> Iterator[tuple["subprocess.Popen[str]", IO[str]]]:
    """The command and what it prints on standard error; killed at the end."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield process, process.stderr
    finally:
        process.kill()
        process.stderr.close()
        process.wait(PATIENCE)


@pytest.fixture
def refusing_url() -> Iterator[str]:
    """The URL of a port at which nothing listens: it is taken, so that nothing else comes to listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"pulsar://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda each: each[0])
def test_the_first_refused_attempt_is_printed_and_it_asks_on(arguments: list[str], refusing_url: str) -> None:
    with running(*arguments, "--url", refusing_url) as (process, errors):
        line = next(line for line in errors if "messages of" not in line)
        assert line.startswith("pulsar-trio: ")
        assert "not connected, an attempt failed" in line
        assert "refused" in line
        assert refusing_url.removeprefix("pulsar://") in line
        assert "; next attempt in 0.1 s" in line, "it is the first attempt that is printed"
        assert process.poll() is None, "it goes on"


def test_for_machines_it_is_one_object(refusing_url: str) -> None:
    with running(*COMMANDS[0], "--json", "--url", refusing_url) as (_, errors):
        (text,) = json.loads(errors.readline()).values()
        assert "next attempt in 0.1 s" in text


def test_when_the_broker_comes_it_says_so_and_does_its_work() -> None:
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        port = str(place.getsockname()[1])
        with running(*COMMANDS[0], "--url", f"pulsar://127.0.0.1:{port}") as (process, errors):
            assert "an attempt failed" in errors.readline()
            place.close()
            with running("broker", "--port", port):
                assert "connected after" in errors.readline()
                assert process.wait(PATIENCE) == 0


def test_a_port_that_never_answers_is_named_after_a_while() -> None:
    """No attempt has failed, and none will before the connection timeout."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"pulsar://127.0.0.1:{silent.getsockname()[1]}"
        with running(*COMMANDS[1], "--url", url) as (process, errors):
            line = errors.readline()
            assert line.startswith(
                "pulsar-trio: consumer on persistent://public/default/t, subscription 's': "
            )
            assert re.search(r"not connected for \d+\.\d s, and never was; connecting to 127\.0\.0\.1:", line)
            assert process.poll() is None


def test_a_port_for_http_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as web:
        url = f"pulsar://127.0.0.1:{web.getsockname()[1]}"
        with running(*COMMANDS[1], "--url", url) as (_, errors):
            connection, _ = web.accept()
            with connection:
                connection.recv(10_000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
                assert "answers in HTTP: this is a port for HTTP, such as 8080" in errors.readline()
