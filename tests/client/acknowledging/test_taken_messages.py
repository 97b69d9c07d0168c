"""`TakenMessages`, compared with a set of messages for each transaction."""

from hypothesis import given
from hypothesis import strategies as st

from pulsar_sansio.client.acknowledging.taken_messages import AcknowledgedMessages, TakenMessages

SIZE = 4
ENTRIES = [(1, 0), (1, 1), (2, 0)]

STEPS = st.lists(
    st.tuples(st.sampled_from(["one", "through", "end"]), st.sampled_from(ENTRIES), st.integers(0, SIZE - 1))
)


@given(STEPS, st.lists(st.booleans(), min_size=1))
def test_bits_are_those_of_all_open_transactions(
    steps: list[tuple[str, tuple[int, int], int]], choices: list[bool]
) -> None:
    """TXN-01: no message is acknowledged by two transactions."""
    taken = TakenMessages()
    everything = [(entry, index) for entry in ENTRIES for index in range(SIZE)]
    models: dict[AcknowledgedMessages, set[tuple[tuple[int, int], int]]] = {}
    both = [AcknowledgedMessages(), AcknowledgedMessages()]
    for number, (what, entry, index) in enumerate(steps):
        messages = both[choices[number % len(choices)]]
        model = models.setdefault(messages, set())
        other = {each for key, value in models.items() if key is not messages for each in value}
        if what == "one" and (entry, index) not in other:
            taken.take(messages, entry, 1 << index)
            model.add((entry, index))
        elif what == "through":
            left = ((1 << SIZE) - 1) >> (index + 1) << (index + 1)
            taken.take_through(messages, (*entry, left or None))
            model.update(each for each in everything if each <= (entry, index))
        elif what == "end":
            taken.remove(messages)
            del models[messages]
            both = [AcknowledgedMessages() if each is messages else each for each in both]
    found = {
        (entry, index) for entry in ENTRIES for index in range(SIZE) if taken.bits(entry, SIZE) >> index & 1
    }
    assert found == {each for model in models.values() for each in model}
    if not models:
        assert not taken
    for entry in ENTRIES:
        whole = all((entry, index) in found for index in range(SIZE))
        assert taken.has_whole(entry, SIZE) == whole
        assert taken.has_any([entry]) == ((entry, 0) in found)


def test_a_seek_clears_all() -> None:
    taken = TakenMessages()
    messages = AcknowledgedMessages()
    taken.take(messages, (1, 0), 1)
    taken.clear()
    assert not taken
    assert taken.bits((1, 0), 1) == 0
    taken.remove(messages)
    assert not taken


def test_confirmed_messages_are_known_to_the_broker() -> None:
    taken = TakenMessages()
    messages = AcknowledgedMessages()
    taken.take(messages, (1, 0), 0b011)
    messages.confirm((1, 0), 0b001)
    assert messages.unconfirmed == {(1, 0): 0b010}
    messages.confirm((1, 0), 0b010)
    assert messages.unconfirmed == {}
    assert messages.entries == {(1, 0): 0b011}
