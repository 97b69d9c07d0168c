"""Fixtures: the programs of the other clients, one of each for all tests."""

from collections.abc import Iterator

import pytest

from tests.interop.programs import go_typed_command, java_typed_command
from tests.interop.typed_program import TypedProgram


@pytest.fixture(scope="session")
def java() -> Iterator[TypedProgram]:
    with TypedProgram(java_typed_command()) as program:
        yield program


@pytest.fixture(scope="session")
def go() -> Iterator[TypedProgram]:
    with TypedProgram(go_typed_command()) as program:
        yield program
