"""`JointAttachment`: the whole is detached from the first lost part to the last one that is back."""

from pulsar_sansio.client.joint.joint_attachment import JointAttachment
from pulsar_sansio.client.outputs import Attached, Detached, Output
from pulsar_sansio.core.context import Context
from pulsar_sansio.model.errors import ConnectionLost

HANDLE = 7
FIRST, SECOND = ConnectionLost("first"), ConnectionLost("second")


class Whole:
    """A consumer of several parts."""

    def __init__(self, *, ready: bool = True) -> None:
        self.ready = ready
        self.context: Context[Output] = Context(0, seed=1)
        self.joint = JointAttachment(self.context, HANDLE, lambda: self.ready)

    def outputs(self) -> list[Output]:
        found = list(self.context.outputs)
        self.context.outputs.clear()
        return found


def test_it_is_detached_once_with_the_first_cause() -> None:
    whole = Whole()
    whole.joint.on_detached(FIRST)
    whole.joint.on_detached(SECOND)
    assert whole.outputs() == [Detached(HANDLE, FIRST)]


def test_it_is_attached_when_the_last_part_is_back() -> None:
    whole = Whole()
    whole.joint.on_detached(FIRST)
    whole.joint.on_detached(SECOND)
    whole.outputs()
    whole.joint.on_attached()
    assert whole.outputs() == []
    whole.joint.on_attached()
    assert whole.outputs() == [Attached(HANDLE)]
    whole.joint.on_detached(SECOND)
    assert whole.outputs() == [Detached(HANDLE, SECOND)]


def test_before_it_is_ready_it_is_only_counted() -> None:
    whole = Whole(ready=False)
    whole.joint.on_detached(FIRST)
    whole.joint.on_attached()
    whole.joint.on_detached(SECOND)
    assert (whole.outputs(), whole.joint.detached) == ([], 1)
    whole.joint.on_ready([None, SECOND, None])
    assert whole.outputs() == [Detached(HANDLE, SECOND)]


def test_ready_with_all_parts_attached_says_nothing() -> None:
    whole = Whole()
    whole.joint.on_ready([None, None])
    assert whole.outputs() == []


def test_a_detached_part_that_ends_counts_as_back_while_others_go_on() -> None:
    whole = Whole()
    whole.joint.on_detached(FIRST)
    whole.outputs()
    whole.joint.on_ended(True)
    assert whole.outputs() == [Attached(HANDLE)]
    whole.joint.on_detached(FIRST)
    whole.outputs()
    whole.joint.on_ended(False)
    assert whole.outputs() == [], "the whole ends with it"
