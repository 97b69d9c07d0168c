"""The options of `produce` and `consume` for end-to-end encryption.

Keys come from files only: all users of a machine can read its command lines.
"""

import argparse
from pathlib import Path
from typing import TypedDict

from pulsar_sansio import ConsumerCryptoFailureAction
from pulsar_trio.security.key_reader import KeyFiles, KeySource


class ProducerEncryption(TypedDict, total=False):
    """Keywords of `create_producer`."""

    encryption_keys: tuple[str, ...]
    crypto_key_reader: KeySource | None


class ConsumerEncryption(TypedDict, total=False):
    """Keywords of `subscribe`."""

    crypto_key_reader: KeySource | None
    crypto_failure_action: ConsumerCryptoFailureAction


def add_producer_keys(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that encrypts."""
    parser.add_argument(
        "--encryption-key",
        action="append",
        metavar="NAME",
        help="encrypt for the holders of the private key of that name; may be repeated",
    )
    _add_key_files(parser, "public")


def add_consumer_keys(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that decrypts."""
    _add_key_files(parser, "private")
    parser.add_argument(
        "--on-crypto-failure",
        choices=[action.value for action in ConsumerCryptoFailureAction],
        help="with a message that cannot be decrypted: leave it unacknowledged (fail, the default), "
        "acknowledge it unprinted (discard), print it encrypted (consume)",
    )


def _add_key_files(parser: argparse.ArgumentParser, which: str) -> None:
    parser.add_argument(
        "--key-file",
        action="append",
        type=_key_file,
        metavar="[NAME=]FILE",
        help=f"a {which} key, PEM, of that name, or of every name; may be repeated with names",
    )


def _key_file(text: str) -> tuple[str | None, Path]:
    name, equals, file = text.partition("=")
    if not equals:
        name, file = "", text
    if not file or (equals and not name):
        raise argparse.ArgumentTypeError(f"FILE, or NAME=FILE, not {text!r}")
    return name or None, Path(file)


def mistake_in_producer_keys(given: argparse.Namespace) -> str | None:
    """Return the mistake in options that need each other, if there is one."""
    if (given.encryption_key is None) is not (given.key_file is None):
        return "arguments --encryption-key and --key-file: each needs the other"
    return _mistake_in_files(given)


def mistake_in_consumer_keys(given: argparse.Namespace) -> str | None:
    """Return the mistake in options that exclude each other, if there is one."""
    return _mistake_in_files(given)


def _mistake_in_files(given: argparse.Namespace) -> str | None:
    names = [name for name, _ in given.key_file or ()]
    if len(set(names)) < len(names) or (None in names and len(names) > 1):
        return "argument --key-file: one file without a name, or several, each with a name of its own"
    return None


def _key_files(given: argparse.Namespace) -> KeyFiles:
    files = list(given.key_file)
    return Path(files[0][1]) if files[0][0] is None else dict(files)


def producer_encryption(given: argparse.Namespace) -> ProducerEncryption:
    """Return the keywords of a producer."""
    if given.encryption_key is None:
        return {}
    return {"encryption_keys": tuple(given.encryption_key), "crypto_key_reader": _key_files(given)}


def consumer_encryption(given: argparse.Namespace) -> ConsumerEncryption:
    """Return the keywords of a consumer."""
    found: ConsumerEncryption = {}
    if given.key_file is not None:
        found["crypto_key_reader"] = _key_files(given)
    if given.on_crypto_failure is not None:
        found["crypto_failure_action"] = ConsumerCryptoFailureAction(given.on_crypto_failure)
    return found
