"""Importing the client does not load the broker; the broker's names are loaded when they are asked for."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import pulsar_sansio
import pulsar_trio

BROKER = ("pulsar_sansio.broker", "pulsar_trio.broker")


def broker_modules_after(code: str) -> list[str]:
    """Run code in a fresh process, without the tests' checker, and return the broker's modules it loaded."""
    program = f"{code}\nimport sys\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(Path(pulsar_sansio.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, check=True, text=True
    )
    return [name for name in found.stdout.split() if name.startswith(BROKER)]


@pytest.mark.parametrize("package", ["pulsar_sansio", "pulsar_trio"])
def test_the_client_does_not_load_the_broker(package: str) -> None:
    assert broker_modules_after(f"import {package}; {package}.Client") == []


@pytest.mark.parametrize(
    ("code", "module"),
    [
        ("from pulsar_sansio import Broker", "pulsar_sansio.broker.broker"),
        ("from pulsar_sansio import broker_outputs", "pulsar_sansio.broker.outputs"),
        ("from pulsar_trio import open_broker", "pulsar_trio.broker.server"),
        ("from pulsar_trio import NotFound", "pulsar_sansio.broker.admin_errors"),
    ],
)
def test_a_name_of_the_broker_loads_it(code: str, module: str) -> None:
    assert module in broker_modules_after(code)


@pytest.mark.parametrize("package", [pulsar_sansio, pulsar_trio], ids=lambda package: package.__name__)
def test_every_public_name_is_there_and_no_other(package: ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = package.no_such_name
