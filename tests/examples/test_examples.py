"""Each example does its job against the embedded broker, and stays short enough to be read at once."""

import asyncio
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsar_trio import open_broker
from tests.patience import PATIENCE
from tests.security.certificates import Authority

FOLDER = Path(__file__).parent.parent.parent / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / f"{name}.py"), run_name=name)


def test_every_example_has_its_test() -> None:
    assert EXAMPLES == [
        "core_with_asyncio",
        "core_with_threads",
        "core_with_trio",
        "produce_and_consume",
        "transform",
        "worker",
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_short_enough(name: str) -> None:
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) < 150


async def test_produce_and_consume() -> None:
    example = load("produce_and_consume")
    with trio.fail_after(PATIENCE):
        assert await example["with_own_broker"]() == [f"hello {number}" for number in range(10)]


async def test_transform() -> None:
    example = load("transform")
    with trio.fail_after(PATIENCE):
        assert await example["with_own_broker"]() == [f"invoice of order {number}" for number in range(20)]


async def test_core_with_trio() -> None:
    main = load("core_with_trio")["main"]
    with trio.fail_after(PATIENCE):
        async with open_broker() as broker:
            assert await main(broker.url) == greetings(10)
            assert await main(broker.url, "many", 1000) == greetings(1000)


@pytest.mark.parametrize("name", ["core_with_asyncio", "core_with_trio"])
async def test_tls(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    monkeypatch.setenv("PULSAR_TOKEN", "a-token")
    main = load(name)["main"]
    with trio.fail_after(PATIENCE):
        async with open_broker(tls=authority.server(), tls_port=0) as broker:
            if name == "core_with_trio":
                received = await main(broker.tls_url, "t", 10)
            else:
                texts = await trio.to_thread.run_sync(in_asyncio, main, broker.tls_url, "t", 10)
                received = [text.encode() for text in texts]
    assert received == greetings(10)


def test_an_example_without_tls_says_so() -> None:
    with pytest.raises(ValueError, match="has no TLS"):
        load("core_with_threads")["main"]("pulsar+ssl://localhost")


def greetings(count: int) -> list[bytes]:
    return [b"hello %d" % number for number in range(count)]


def in_asyncio(main: Callable[..., Any], *arguments: object) -> list[str]:
    result: list[str] = asyncio.run(main(*arguments))
    return result


def in_thread(main: Callable[..., Any], *arguments: object) -> list[str]:
    result: list[str] = main(*arguments)
    return result


@pytest.mark.parametrize(
    ("name", "run"), [("core_with_asyncio", in_asyncio), ("core_with_threads", in_thread)]
)
async def test_core_with_another_loop(name: str, run: Callable[..., list[str]]) -> None:
    main = load(name)["main"]
    with trio.fail_after(PATIENCE):
        async with open_broker() as broker:
            for topic, count in [("few", 10), ("many", 1000)]:
                received = await trio.to_thread.run_sync(run, main, broker.url, topic, count)
                assert [text.encode() for text in received] == greetings(count)
