"""`ClientCredentials`: the options of OAuth 2.0, and the file that Java's client calls a private key."""

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import ClientCredentials, TokenRequest
from pulsar_security.client_credentials import MAX_FILE
from tests.canary import CANARY

BY_ID: dict[str, Any] = {
    "issuer_url": "https://issuer",
    "client_id": "worker",
    "client_secret": Secret(CANARY),
}

FOUND = {"client_id": "worker", "client_secret": CANARY, "issuer_url": "https://issuer"}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "give credentials, or client_id and client_secret"),
        ({"client_id": "a"}, "give credentials, or client_id and client_secret"),
        ({"client_secret": Secret(CANARY)}, "give credentials, or client_id and client_secret"),
        ({"file": Path("f"), **BY_ID}, "give credentials, or client_id and client_secret"),
        ({"file": Path("f"), "client_id": "a"}, "give credentials, or client_id and client_secret"),
        ({**BY_ID, "issuer_url": None}, "client_id needs issuer_url"),
        ({**BY_ID, "client_id": "\ud800"}, "client_id: text that UTF-8 can have"),
        ({**BY_ID, "client_secret": Secret(b"\xff")}, "client_secret: text that UTF-8 can have"),
        ({**BY_ID, "audience": 7}, "audience: text that UTF-8 can have"),
        ({**BY_ID, "scope": b"s"}, "scope: text that UTF-8 can have"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        ClientCredentials(**options)
    assert str(caught.value) == f"OAuth2: {text}"


def test_a_request_of_the_options() -> None:
    credentials = ClientCredentials(**BY_ID, audience="urn:pulsar", scope="send")
    expected = TokenRequest("https://issuer", "worker", Secret(CANARY), "urn:pulsar", "send")
    assert credentials.request() == expected
    assert CANARY not in repr(credentials) + repr(credentials.request())


@pytest.mark.parametrize(
    ("option", "content", "issuer"),
    [
        (None, FOUND, "https://issuer"),
        (None, {**FOUND, "type": "client_credentials"}, "https://issuer"),
        ("https://other", FOUND, "https://other"),
        ("https://other", {**FOUND, "issuer_url": 7}, "https://other"),
    ],
)
def test_a_request_of_the_file(
    tmp_path: Path, option: str | None, content: dict[str, Any], issuer: str
) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(content))
    credentials = ClientCredentials(issuer_url=option, file=file)
    assert credentials.request() == TokenRequest(issuer, "worker", Secret(CANARY), None, None)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        credentials.request()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "OAuth2: FILE is no JSON object of credentials"),
        ("[" * 60_000, "OAuth2: FILE is no JSON object of credentials"),
        ("[]", "OAuth2: FILE is no JSON object of credentials"),
        (json.dumps(FOUND).ljust(MAX_FILE + 1), "OAuth2: FILE is no JSON object of credentials"),
        ('{"type": "canary-secret"}', "OAuth2: FILE: its type is not client_credentials"),
        (json.dumps({**FOUND, "client_id": ""}), "OAuth2: FILE has no client_id"),
        (json.dumps({**FOUND, "client_id": 7}), "OAuth2: FILE has no client_id"),
        ('{"client_id": "a"}', "OAuth2: FILE has no client_secret"),
        (json.dumps({**FOUND, "client_secret": CANARY + "\ud800"}), "OAuth2: FILE has no client_secret"),
        (json.dumps({**FOUND, "issuer_url": 7}), "OAuth2: neither issuer_url nor FILE names the issuer"),
        (json.dumps({**FOUND, "issuer_url": ""}), "OAuth2: neither issuer_url nor FILE names the issuer"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: str, text: str) -> None:
    """The refusal names the file and quotes nothing of it."""
    file = tmp_path / "credentials.json"
    file.write_text(content)
    with pytest.raises(InvalidConfiguration) as caught:
        ClientCredentials(file=file).request()
    assert str(caught.value) == text.replace("FILE", str(file))
    assert caught.value.__context__ is None


def test_a_file_of_the_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.write_text(json.dumps(FOUND).ljust(MAX_FILE))
    assert ClientCredentials(file=file).request().client_id == "worker"
