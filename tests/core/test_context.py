"""The context: ids are never used again, outputs come in order."""

from pulsar_sansio.core.context import Context, InnerContext


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


class TestInner:
    def test_what_is_said_inside_is_heard_in_order_and_not_in_the_middle(self) -> None:
        outer: Context[str] = Context(5, 1)
        heard: list[str] = []
        inner = InnerContext(outer, heard.append)
        inner.emit("a")
        inner.emit("b")
        assert (heard, list(outer.outputs), outer.deadlines.next()) == ([], [], 5)
        outer.deadlines.run(5)
        assert (heard, list(inner.outputs), outer.deadlines.next()) == (["a", "b"], [], None)

    def test_what_is_said_while_hearing_is_heard_too(self) -> None:
        outer: Context[str] = Context(5, 1)
        heard: list[str] = []

        def hear(output: str) -> None:
            heard.append(output)
            if len(heard) < 3:
                inner.emit(output + "!")

        inner = InnerContext(outer, hear)
        inner.emit("a")
        outer.deadlines.run(5)
        assert heard == ["a", "a!", "a!!"]

    def test_outputs_after_the_end_are_not_reported(self) -> None:
        outer: Context[str] = Context(5, 1)
        heard: list[str] = []
        inner = InnerContext(outer, heard.append)
        inner.emit("a")
        inner.close()
        inner.emit("b")
        assert outer.deadlines.next() is None
        outer.deadlines.run(9)
        assert heard == []

    def test_all_else_is_shared(self) -> None:
        outer: Context[str] = Context(5, 1)
        inner: Context[str] = InnerContext(outer, lambda output: None)
        outer.now = 7
        assert inner.now == 7
        assert [outer.new_id(), inner.new_id(), outer.new_id()] == [1, 2, 3]
        assert outer.was_given(2)
        assert inner.was_given(3)
        assert not inner.was_given(4)
        assert [inner.new_link(), outer.new_link()] == [1, 2]
        assert (inner.rng, inner.deadlines) == (outer.rng, outer.deadlines)
