"""The names that `pulsar_trio` exports, and those that it keeps from applications."""

import pulsar_trio
from pulsar_trio import Producer, PulsarError


def test_every_error_that_is_raised_can_be_imported() -> None:
    """All subclasses of `PulsarError` in the packages, but for the few that never leave a machine."""
    found: set[type] = set()
    to_see: list[type] = [PulsarError]
    while to_see:
        kind = to_see.pop()
        found.add(kind)
        subclasses: list[type] = kind.__subclasses__()
        to_see += [each for each in subclasses if each.__module__.startswith("pulsar_")]
    public = {each.__name__ for each in found if not each.__module__.startswith(INSIDE)}
    missing = {name for name in public if name not in pulsar_trio.__all__ or not hasattr(pulsar_trio, name)}
    assert missing == set()


INSIDE = (
    "pulsar_sansio.broker.",
    "pulsar_sansio.client.delivery.permits",
    "pulsar_sansio.model.topics_pattern",
    "pulsar_sim",
    "pulsar_spark",
)
"""The broker's own refusals reach a client as the errors of their codes; the others are caught where they are
raised, or are a connection's end, which is a `RemoteProtocolError`."""


def test_what_is_the_drivers_is_not_public() -> None:
    for kind in (Producer, pulsar_trio.Consumer, pulsar_trio.TableView):
        assert not {"end", "on_crash", "on_output", "opened"} & set(dir(kind))
