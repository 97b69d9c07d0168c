"""The context: ids are never used again, outputs come in order."""

from pulsar_sansio.core.context import Context


def test_ids_and_links_are_counted_apart_and_never_repeat() -> None:
    context: Context[str] = Context(0, seed=1)
    assert [context.new_id() for _ in range(3)] == [1, 2, 3]
    assert [context.new_link() for _ in range(2)] == [1, 2]
    assert [context.was_given(number) for number in (0, 1, 3, 4)] == [False, True, True, False]


def test_outputs_are_a_queue() -> None:
    context: Context[str] = Context(0, seed=1)
    context.emit("a")
    context.emit("b")
    assert list(context.outputs) == ["a", "b"]
