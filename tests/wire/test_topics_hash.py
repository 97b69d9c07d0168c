"""The hash of a list of topics."""

from pulsar_sansio.wire import topics_hash


def test_the_hash_of_a_list() -> None:
    """Known figures of the CRC-32C of the sorted names."""
    base = "persistent://my-property/my-ns/pattern-topic-"
    assert topics_hash([]) == "00000000"
    assert topics_hash([base + "1"]) == "0d0602ed"
    assert topics_hash([base + "3", base + "1", base + "2"]) == "90d4a04a"
