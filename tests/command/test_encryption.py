"""`produce` and `consume` with keys: what is encrypted, and what cannot be decrypted."""

from pathlib import Path

import pytest

from tests.command.test_cli import BrokerThread, Command, broker, command, one_line
from tests.command.test_messages import _assert_backlog, consume, produce, values
from tests.encryption.keys import key_pair

__all__ = ["broker", "command"]


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with the files of two key pairs."""
    for number, name in enumerate(("billing", "audit")):
        public, private = key_pair("rsa", number)
        (tmp_path / f"{name}-private.key").write_bytes(private)
        (tmp_path / f"{name}-public.key").write_bytes(public)
    return tmp_path


def encrypt(run: Command, at: BrokerThread, keys: Path, name: str, given: bytes) -> None:
    file = keys / f"{name}-public.key"
    done = produce(run, at, "--encryption-key", name, "--key-file", str(file), given=given)
    assert done.code == 0, done.err


def test_what_is_encrypted_is_decrypted(broker: BrokerThread, command: Command, keys: Path) -> None:
    """One file for every name, and a file for each name."""
    options = [f"--key-file={name}={keys / name}-public.key" for name in ("billing", "audit")]
    names = ("--encryption-key", "billing", "--encryption-key", "audit")
    assert produce(command, broker, *names, *options, given=b"secret\n").code == 0
    for name in ("billing", "audit"):
        file = f"{keys / name}-private.key"
        assert values(consume(command, broker, 1, "--key-file", file, name=name)) == ["secret"]
    file = f"audit={keys}/audit-private.key"
    assert values(consume(command, broker, 1, "--key-file", file, name="named")) == ["secret"]


def test_values_are_encrypted_too(broker: BrokerThread, command: Command, keys: Path) -> None:
    options = ("--encryption-key", "billing", "--key-file", f"{keys}/billing-public.key")
    assert produce(command, broker, "--schema", "int32", *options, given=b"7\n").code == 0
    private = f"{keys}/billing-private.key"
    assert consume(command, broker, 1, "--key-file", private, "--json").objects[0]["value"] == 7
    (message,) = consume(command, broker, 1, "--on-crypto-failure", "consume", "--json", name="raw").objects
    assert message.get("value") != 7


@pytest.mark.parametrize(("action", "backlog"), [("fail", 1), ("discard", 0)])
def test_what_cannot_be_decrypted_is_not_printed(
    action: str, backlog: int, broker: BrokerThread, command: Command, keys: Path
) -> None:
    encrypt(command, broker, keys, "audit", b"other\n")
    encrypt(command, broker, keys, "billing", b"mine\n")
    options = (f"--key-file=billing={keys}/billing-private.key", "--on-crypto-failure", action)
    done = consume(command, broker, 1, *options)
    assert values(done) == ["mine"]
    assert "audit" in done.err
    broker.call(lambda running: _assert_backlog(running.stats("t"), backlog))


def test_a_key_that_cannot_be_read_is_named(broker: BrokerThread, command: Command, keys: Path) -> None:
    """The text names the key, and shows nothing of a file."""
    done = produce(command, broker, "--encryption-key", "billing", "--key-file", f"{keys}/none.pem")
    assert done.code == 1
    assert "billing" in one_line(done.err)
    (keys / "wrong.pem").write_text("-----BEGIN PUBLIC KEY-----\nc2VjcmV0\n")
    done = produce(command, broker, "--encryption-key", "billing", "--key-file", f"{keys}/wrong.pem")
    assert done.code == 1
    assert "billing" in one_line(done.err)
    assert "c2VjcmV0" not in done.err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["produce", "--encryption-key", "k"], "--encryption-key and --key-file: each needs the other"),
        (["produce", "--key-file", "f"], "--encryption-key and --key-file: each needs the other"),
        (["consume", "--key-file", "=f"], "argument --key-file: FILE, or NAME=FILE, not '=f'"),
        (["consume", "--key-file", "k="], "argument --key-file: FILE, or NAME=FILE, not 'k='"),
        (["consume", "--key-file", "a", "--key-file", "b"], "several, each with a name of its own"),
        (["consume", "--key-file", "k=a", "--key-file", "k=b"], "several, each with a name of its own"),
        (["consume", "--key-file", "k=a", "--key-file", "b"], "several, each with a name of its own"),
    ],
)
def test_wrong_options(arguments: list[str], why: str, command: Command) -> None:
    name, *options = arguments
    subscription = ["--subscription", "s"] if name == "consume" else []
    done = command(name, "t", *subscription, *options)
    assert done.code == 2
    assert why in one_line(done.err)
