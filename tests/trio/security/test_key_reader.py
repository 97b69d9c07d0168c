"""`KeyReader`: the forms in which an application gives encryption keys, and what it says when one fails."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from pulsar_sansio import CryptoError, EncryptionKeyInfo, InvalidConfiguration, Secret
from pulsar_trio.security.key_reader import KeyReader
from tests.canary import CANARY

PEM = f"{CANARY} in PEM"
INFO = EncryptionKeyInfo(Secret(PEM))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "private.key"
    path.write_text(PEM)
    return path


async def asynchronous(name: str, metadata: Mapping[str, str]) -> str:
    await trio.lowlevel.checkpoint()
    return PEM


@pytest.mark.parametrize(
    "source",
    [
        lambda name, metadata: PEM,
        lambda name, metadata: PEM.encode(),
        lambda name, metadata: Secret(PEM),
        lambda name, metadata: INFO,
        asynchronous,
        lambda name, metadata: asynchronous(name, metadata),
    ],
    ids=["text", "bytes", "a secret", "with metadata", "asynchronous", "an awaitable"],
)
async def test_a_function_returns_a_key_in_many_forms(source: Any) -> None:
    assert await KeyReader(source).read("k", {}) == INFO


async def test_a_function_is_given_name_and_metadata_and_its_metadata_travel() -> None:
    def source(name: str, metadata: Mapping[str, str]) -> EncryptionKeyInfo:
        return EncryptionKeyInfo(Secret(name), {**metadata, "version": "2"})

    found = await KeyReader(source).read("k", {"for": "billing"})
    assert found == EncryptionKeyInfo(Secret("k"), {"for": "billing", "version": "2"})


async def test_files_for_all_keys_or_by_name(file: Path) -> None:
    assert await KeyReader(file).read("any", {}) == INFO
    assert await KeyReader({"k": file}).read("k", {}) == INFO
    with pytest.raises(CryptoError, match="no file for a key of that name"):
        await KeyReader({"k": file}).read("other", {})


async def test_a_file_is_read_each_time(file: Path) -> None:
    reader = KeyReader(file)
    await reader.read("k", {})
    await trio.Path(file).write_text(f"{CANARY}, a newer one")
    assert (await reader.read("k", {})).key == Secret(f"{CANARY}, a newer one")


async def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CryptoError, match=r"missing': No such file"):
        await KeyReader(tmp_path / "missing").read("k", {})


async def test_the_text_of_an_exception_may_hold_a_key_and_is_not_repeated() -> None:
    def failing(name: str, metadata: Mapping[str, str]) -> str:
        raise ValueError(PEM)

    with pytest.raises(CryptoError, match=r"^the key reader raised ValueError$") as caught:
        await KeyReader(failing).read("k", {})
    assert isinstance(caught.value.__cause__, ValueError)


async def test_an_error_of_the_application_about_keys_is_told_as_it_is() -> None:
    def failing(name: str, metadata: Mapping[str, str]) -> str:
        raise CryptoError(f"{name} is revoked")

    with pytest.raises(CryptoError, match="k is revoked"):
        await KeyReader(failing).read("k", {})


@pytest.mark.parametrize("returned", [None, 1, ["pem"]])
async def test_what_is_no_key_is_refused_by_its_type(returned: Any) -> None:
    with pytest.raises(CryptoError, match=f"returned {type(returned).__name__}, and no key"):
        await KeyReader(lambda name, metadata: returned).read("k", {})


@pytest.mark.parametrize("source", ["a path as text", 5, {"k": "text"}, {1: Path()}])
def test_other_sources_are_refused(source: Any) -> None:
    with pytest.raises(InvalidConfiguration, match="crypto_key_reader: a Path, a mapping"):
        KeyReader(source)


def test_a_reader_shows_its_files_and_nothing_else(file: Path) -> None:
    assert repr(KeyReader(file)) == f"KeyReader({file})"
    assert repr(KeyReader(asynchronous)) == "KeyReader(…)"
