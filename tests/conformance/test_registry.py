"""A selection of rules: which of them look at which frame."""

import pytest

from pulsar_sansio.conformance import RULES, Side
from pulsar_sansio.conformance import commands as c
from pulsar_sansio.conformance.registry import Selection, id_of


def ids(selection: Selection, side: Side, kind: int, traits: int = ~0, *, blames: bool = False) -> set[str]:
    return {id_of(check) for check in selection.rules(side, kind, traits, blames)}


def test_all_rules_are_selected_by_default() -> None:
    assert Selection().ids == RULES.keys()


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(ValueError, match="not rules of the checker: NONE-1, NONE-2"):
        Selection(["CONN-01", "NONE-2", "NONE-1"])


def test_a_rule_looks_at_frames_of_its_kinds_and_side() -> None:
    everything = Selection()
    for kind in (c.SEND, c.MESSAGE, c.SUBSCRIBE, c.FLOW):
        for side in Side:
            expected = {
                each.id for each in RULES.values() if kind in each.kinds and each.side in (None, side)
            }
            assert ids(everything, side, kind) == expected


def test_a_rule_with_traits_looks_only_at_frames_that_have_one() -> None:
    everything = Selection()
    plain = ids(everything, Side.CLIENT, c.SEND, 0)
    assert plain == {name for name in ids(everything, Side.CLIENT, c.SEND) if not RULES[name].traits}
    marked = next(each for each in RULES.values() if each.traits and c.SEND in each.kinds)
    lowest = marked.traits & -marked.traits
    assert marked.id in ids(everything, marked.side or Side.CLIENT, c.SEND, lowest)


def test_only_rules_that_may_blame_the_sender_look_where_one_side_is_checked() -> None:
    everything = Selection()
    for side in Side:
        for kind, route in everything.received[side].items():
            assert {id_of(check) for check in route} == ids(everything, side, kind, blames=True)
            assert all(RULES[id_of(check)].blames for check in route)


def test_routes_have_the_chosen_rules_alone() -> None:
    name = next(each.id for each in RULES.values() if c.SUBSCRIBE in each.kinds and not each.traits)
    side = RULES[name].side or Side.CLIENT
    chosen = Selection([name])
    assert chosen.routes[side][c.SUBSCRIBE, 0] == (RULES[name].check,)
    assert chosen.routes[side][c.PING, 0] == () or c.PING in RULES[name].kinds
