"""Rows of values and of encrypted payloads: their jobs, what they cost, and their orders in both clients."""

import json
from dataclasses import asdict, replace

import pytest

from bench.__main__ import Bench, Line, chosen
from bench.forms import forms_table
from bench.jobs import Job
from bench.orders import LINES, Order, order
from bench.rows import FORMS, Row
from pulsar_sansio.schemas import AvroSchema, JsonSchema
from tests.bench.clients import Client


@pytest.mark.parametrize("form", FORMS)
def test_messages_of_a_form_are_sent_and_received_in_it(form: str) -> None:
    """Only encrypted ones have keys: the clients' fast paths have none."""
    jobs: list[tuple[str, Job]] = []
    clients = Client("ours", [1.0] * 4, jobs), Client("official", [1.0] * 4, jobs)
    rows = chosen(["send", "receive"], [100], ["bytes", form])
    Bench("pulsar://x", None, *clients, 100_000, "folder").round(1, [row for row in rows if row.batched])
    assert [(job.workload, job.form) for name, job in jobs if name == "official"] == [
        *(("send", form), ("prepare", form), ("fill", form), ("receive", form)),
        *(("send", ""), ("prepare", ""), ("fill", ""), ("receive", "")),
    ]
    assert {job.key_pair for _, job in jobs if job.form} == {"folder" if form == "encrypted" else ""}
    assert {job.key_pair for _, job in jobs if not job.form} == {""}
    topics = {form: {job.topic for _, job in jobs if job.form == form} for form in ("", form)}
    assert not topics[""] & topics[form]


def test_what_a_form_costs_stands_beside_bytes() -> None:
    plain = Row("send", 100, True)
    row = replace(plain, form="Avro")
    lines = {
        plain: Line(plain.name, 100, 10.0, 1.0, 10.0, 0.5, 20.0),
        row: Line(row.name, 100, 10.0, 1.0, 10.0, 2.0, 30.0),
    }
    assert "send, Avro                       100     4.0×       1.5×\n" in forms_table(lines)
    assert forms_table({row: lines[row]}) == forms_table({plain: lines[plain]}) == ""


@pytest.mark.official
@pytest.mark.parametrize("size", LINES)
def test_both_clients_send_one_order_by_one_definition(size: int) -> None:
    """So no client pays for resolving two definitions, and none sends more."""
    from bench import official

    ours = order(size)
    theirs = official.Order(**asdict(ours))
    avro = official.SCHEMAS["Avro"](official.Order)
    assert json.loads(avro.schema_info().schema()) == json.loads(AvroSchema(Order).info.data)
    assert AvroSchema(Order).encode(ours) == avro.encode(theirs)
    assert json.loads(JsonSchema(Order).encode(ours)) == json.loads(
        official.SCHEMAS["JSON"](official.Order).encode(theirs)
    )
