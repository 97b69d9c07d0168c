"""Worlds with schemas: each kind of values arrives, whatever evolves, is refused or is lost."""

from typing import Any

import pytest

from pulsar_sansio.client.producing.message_schemas import MessageSchemas
from pulsar_sansio.model.errors import IncompatibleSchema, SchemaDecodingError
from pulsar_sansio.model.schema import SchemaInfo, SchemaType
from pulsar_sansio.schemas import AvroSchema
from pulsar_sim import Outcome, World
from pulsar_sim.engine.clock import MILLISECOND, SECOND
from pulsar_sim.engine.profile import Profile, SchemaPlan
from pulsar_sim.engine.randomness import Streams
from pulsar_sim.engine.security.encryption_plan import EncryptionPlan
from pulsar_sim.generate import draw
from pulsar_sim.generate.features.schemas import may_have_schemas
from pulsar_sim.model.schemas.definition import FOREIGN
from pulsar_sim.runs.scenarios import quiet_profile


def profile_of(**plan: Any) -> Profile:
    profile = quiet_profile(consumers=2, clients=2, messages=30)
    profile.schemas = SchemaPlan(**plan)
    profile.run_time = 4 * SECOND
    return profile


def passed(profile: Profile, seed: int = 1) -> tuple[World, str]:
    """Run a world that has to pass; return it with its transcript."""
    world = World(seed, profile, keep_trace=True)
    report = world.run()
    assert report.outcome is Outcome.PASSED, str(report)
    return world, "\n".join(report.transcript)


TOPIC = "persistent://public/default/t0"


@pytest.mark.parametrize(
    ("kind", "type"),
    [
        ("avro", SchemaType.AVRO),
        ("json", SchemaType.JSON),
        ("text", SchemaType.STRING),
        ("pairs", SchemaType.KEY_VALUE),
    ],
)
def test_values_of_each_kind_arrive(kind: str, type: SchemaType) -> None:
    world, _ = passed(profile_of(kind=kind))
    assert {each.type for each in world.cluster.store.load().schemas[TOPIC]} == {type}
    assert all(sent.written is not None for each in world.model.producers.values() for sent in each.sent)


def test_a_topic_gets_versions_while_it_is_used() -> None:
    world, transcript = passed(profile_of(registrations=[MILLISECOND, 2 * MILLISECOND, 3 * MILLISECOND]))
    assert world.faults["schema_registered"] == 3
    assert "registers plain for persistent://public/default/t0" in transcript


def test_a_definition_is_refused_until_the_strategy_is_loosened() -> None:
    profile = profile_of(strange_permille=900, loosened_after=SECOND)
    for plan in profile.producers:
        plan.close_permille, plan.pause = 300, 300 * MILLISECOND
    world, transcript = passed(profile)
    assert "error=18" in transcript
    assert FOREIGN.text.encode() in [each.data for each in world.cluster.store.load().schemas[TOPIC]]


def test_versions_are_deleted_while_they_are_used() -> None:
    world, transcript = passed(profile_of(deleted_after=20 * MILLISECOND))
    assert world.faults["schema_deleted"] == 1
    assert "deletes the schema of persistent://public/default/t0" in transcript


@pytest.mark.parametrize(
    "fault", ["schema_refused", "schema_unanswered", "schema_answered_late", "schema_question_cut"]
)
def test_a_question_may_fail_in_every_way(fault: str) -> None:
    profile = profile_of()
    profile.faults, profile.fault_gap = [fault], 20 * MILLISECOND
    seeds = (seed for seed in range(30) if fault in passed(profile, seed)[0].faults)
    assert next(seeds, None) is not None


@pytest.mark.parametrize(
    "fault",
    ["registration_refused", "registration_unanswered", "registration_answered_late", "registration_cut"],
)
def test_a_registration_may_fail_in_every_way(fault: str) -> None:
    """SCHEMA-03: messages wait for the version of their schema, or fail with the reason."""
    profile = with_registrations(fault)
    seeds = (seed for seed in range(12) if fault in passed(profile, seed)[0].faults)
    assert next(seeds, None) is not None


def with_registrations(*faults: str) -> Profile:
    profile = profile_of(mixed_every=2)
    profile.faults, profile.fault_gap = list(faults), 20 * MILLISECOND
    for plan in profile.producers:
        plan.close_permille, plan.pause = 100, 100 * MILLISECOND
    return profile


def rules_of(profile: Profile) -> list[str]:
    return [World(seed, profile).run().rule for seed in range(12)]


def test_a_refused_registration_that_counts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-S1: a message whose schema was refused is not sent without a version."""
    monkeypatch.setattr(MessageSchemas, "_refused", lambda self, info, error: self._registered(info, b""))
    assert "INV-S1" in rules_of(with_registrations("registration_refused"))


def test_messages_that_wait_for_ever_for_a_version_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-P8"""
    monkeypatch.setattr(MessageSchemas, "_refused", lambda self, info, error: None)
    assert "INV-P8" in rules_of(with_registrations("registration_refused", "registration_unanswered"))


def test_a_refusal_without_a_reason_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-P1: an answer that comes in time fails no message."""
    registered = MessageSchemas._registered

    def _registered(self: MessageSchemas, info: SchemaInfo, version: bytes) -> None:
        self._refused(info, IncompatibleSchema("no")) if version[-1] else registered(self, info, version)

    monkeypatch.setattr(MessageSchemas, "_registered", _registered)
    assert "INV-P1" in rules_of(with_registrations())


def test_a_value_that_is_another_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-S2"""
    original = AvroSchema.decoder

    def decoder(self: Any, writer: Any) -> Any:
        decode = original(self, writer)
        return lambda data: {**decode(data), "number": -1}

    monkeypatch.setattr(AvroSchema, "decoder", decoder)
    found = [World(seed, profile_of()).run().rule for seed in range(5)]
    assert "INV-S2" in found


def test_a_value_that_cannot_be_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """INV-S2"""

    def decoder(self: Any, writer: Any) -> Any:
        def decode(data: bytes) -> Any:
            raise SchemaDecodingError("no")

        return decode

    monkeypatch.setattr(AvroSchema, "decoder", decoder)
    found = [World(seed, profile_of()).run().rule for seed in range(5)]
    assert "INV-S2" in found


@pytest.mark.parametrize("kind", ["avro", "json", "pairs"])
def test_messages_have_definitions_of_their_own(kind: str) -> None:
    world, transcript = passed(profile_of(kind=kind, mixed_every=3))
    assert "GET_OR_CREATE_SCHEMA" in transcript
    written = [sent.written for each in world.model.producers.values() for sent in each.sent]
    assert {each.definition.name for each in written if each is not None} == {"plain", "coloured", "sized"}


def test_some_worlds_have_messages_with_definitions_of_their_own() -> None:
    """No definition of a message is refused in them, and every broker can register it."""
    profiles = [profile for profile in (draw(Streams(seed)) for seed in range(1000)) if profile.schemas]
    mixed = [each for each in profiles if each.schemas is not None and each.schemas.mixed_every]
    assert 3 < len(mixed) < len(profiles) / 2
    assert all(broker.protocol_version >= 15 for each in mixed for broker in each.brokers)
    assert all(not each.schemas.strange_permille for each in mixed if each.schemas is not None)


@pytest.mark.parametrize("kind", ["avro", "json", "text", "pairs"])
def test_encrypted_values_arrive(kind: str) -> None:
    profile = profile_of(kind=kind, registrations=[MILLISECOND])
    profile.encryption = EncryptionPlan(recipients=2, refused_permille=200, actions=["fail", "discard"])
    world, _ = passed(profile)
    sent = [sent for each in world.model.producers.values() for sent in each.sent]
    assert all(each.written is not None for each in sent)
    [topic] = world.model.topics.values()
    assert all(entry.sealed is not None for entry in topic.log.values())


def test_some_worlds_with_schemas_encrypt() -> None:
    """No message is delivered as it is there: it would have no value."""
    profiles = [profile for profile in (draw(Streams(seed)) for seed in range(1000)) if profile.schemas]
    plans = [profile.encryption for profile in profiles if profile.encryption is not None]
    assert 5 < len(plans) < len(profiles) / 2
    assert all("consume" not in plan.actions for plan in plans)


def test_nine_worlds_in_a_hundred_have_schemas() -> None:
    """A topic that begins anew with its versions is in another world."""
    profiles = [draw(Streams(seed)) for seed in range(1000)]
    typed = [profile for profile in profiles if profile.schemas is not None]
    assert 60 < len(typed) < 120
    assert all(may_have_schemas(profile) for profile in typed)
    assert {profile.schemas.kind for profile in typed if profile.schemas} == {"avro", "json", "text", "pairs"}
