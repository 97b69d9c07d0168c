"""The official Python client in the part of the programs of `tests/interop`."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pulsar


def answer(options: Mapping[str, str]) -> str:
    """Return "ok", or "refused" with the reason."""
    try:
        _exchange(options)
    except Exception as error:  # every failure of this client counts as a refusal
        return f"refused {type(error).__name__}: {error}"
    return "ok"


def _exchange(options: Mapping[str, str]) -> None:
    client = pulsar.Client(
        options["url"],
        authentication=_authentication(options),
        operation_timeout_seconds=int(options["timeout"]),
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"),
        tls_trust_certs_file_path=options.get("trust"),
        tls_validate_hostname=options["verify"] == "all",
        tls_allow_insecure_connection=options["verify"] == "nothing",
        tls_certificate_file_path=options.get("certificate"),
        tls_private_key_file_path=options.get("key"),
    )
    try:
        consumer = client.subscribe(options["topic"], "s")
        producer = client.create_producer(options["topic"])
        for number in range(int(options["messages"])):
            producer.send(b"%d" % number)
            message = consumer.receive(60_000)
            if message.data() != b"%d" % number:
                raise AssertionError(f"message {number} is {message.data()}")
            consumer.acknowledge(message)
            time.sleep(int(options["pause"]) / 1000)
    finally:
        client.close()


def _authentication(options: Mapping[str, str]) -> Any:
    match options["method"]:
        case "token":
            return pulsar.AuthenticationToken(lambda: Path(options["token"]).read_text())
        case "basic":
            return pulsar.AuthenticationBasic(options["user"], options["password"])
        case "tls":
            return pulsar.AuthenticationTLS(options["certificate"], options["key"])
        case "oauth2":
            keys = {"issuer_url": options["issuer"], "private_key": options["credentials"]}
            return pulsar.AuthenticationOauth2(json.dumps(keys))
        case _:
            return None
