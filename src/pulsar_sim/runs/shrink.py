"""The shrinker: from a seed that fails to the smallest world that fails in the same way.

Owns what may be left out and in which order it is tried: faults, producers and consumers, messages, clients
and topics, then one feature after another. A smaller world is kept where the same invariant is broken. It
knows nothing of why a world fails. What is left is told as a short story: the world, the faults, the frames.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pulsar_sansio.broker.config import BrokerConfig

from ..engine.clock import MILLISECOND, SECOND
from ..engine.failures import Outcome
from ..engine.profile import BrokerPlan, ConsumerPlan, PartitionedPlan, ProducerPlan, Profile
from ..world.world import SeedReport
from .baseline import PLAIN_BROKER, PLAIN_CONSUMER, PLAIN_PRODUCER, PLAIN_PROFILE
from .case import Case, Strike

MAX_RUNS = 400
"""Worlds tried at most."""

MAX_MOVED = 3
"""Faults that are moved together to an earlier moment, at most."""

FEW = (1, 2, 3, 6, 12)
"""The numbers of messages of each producer that the shrinker tries with moved faults."""

LONGEST_LINE = 150

GUESTS = ("transient_subscribers", "single_topic_seekers", "tables")

OF_SEVERAL = ("multi_topics_seekers", "groups", "nonpersistent_apps")
"""The plans of applications that receive from several topics, or from one of their own."""

EVENTS = ("compactions", "ends", "migrations")

KEPT_BROKER_OPTIONS = frozenset(("service_url", "deduplication", "keepalive_interval", "liveness_timeout"))


@dataclass(slots=True)
class Shrunk:
    """The smallest case found that still fails."""

    case: Case
    report: SeedReport
    runs: int
    """Worlds tried."""
    complete: bool
    """Nothing more can be left out; else it was stopped before that was known."""
    transcript: list[str]

    def __str__(self) -> str:
        known = "nothing more can be left out" if self.complete else "more could perhaps be left out"
        tried = f"{self.runs} worlds were tried: {known}"
        return "\n".join([*describe(self.case), *self.transcript, str(self.report), tried])


class Shrinker:
    """Makes one failing case smaller."""

    def __init__(
        self,
        case: Case,
        enough: Callable[[], bool] = lambda: False,
        limit: int = MAX_RUNS,
        watch: Callable[["Shrinker"], None] = lambda _: None,
    ) -> None:
        """`watch` is called when a world was tried. Raises `ValueError` where the case passes."""
        self.runs = 1
        self._watch = watch
        self._enough = enough
        self._limit = limit
        recorded, report = case.recorded() if case.strikes is None else (case, case.run())
        if report.outcome is Outcome.PASSED:
            raise ValueError(f"seed {case.seed} passes")
        self.rule, self._where = report.rule, _where(report)
        self.case, self.report = case, report
        self._try(recorded)

    def shrink(self) -> Shrunk:
        """Try everything until nothing gets smaller any more, or it is enough."""
        steps = (
            self._faults,
            self._applications,
            self._messages,
            self._places,
            self._features,
            self._sooner,
        )
        complete = False
        while not (complete or self._done()):
            before = self.case
            for step in steps:
                step()
            complete = self.case is before and not self._done()
        report = self.case.run(keep_trace=True)
        self.case.rule = self.rule
        return Shrunk(self.case, report, self.runs, complete, readable(report.transcript))

    def _done(self) -> bool:
        return self.runs >= self._limit or self._enough()

    def _try(self, smaller: Case) -> bool:
        """Run a smaller case. Give True where it fails in the same way; it is the case from now on."""
        if self._done():
            return False
        self.runs += 1
        report = smaller.run()
        same = report.rule == self.rule and _where(report) == self._where
        if same:
            self.case, self.report = smaller, report
        self._watch(self)
        return same

    # --- what may go ---

    def _faults(self) -> None:
        """Fault by fault, in ever smaller portions."""
        if self.case.strikes is None:
            return
        reached = self._strikes_before_failure()
        if len(reached) < len(self.case.strikes):
            self._try(replace(self.case, strikes=reached))
        size = len(self.case.strikes)
        while size and not self._done():
            at = 0
            while self.case.strikes and at < len(self.case.strikes) and not self._done():
                strikes = self.case.strikes
                smaller = replace(self.case, strikes=strikes[:at] + strikes[at + size :])
                if not self._try(smaller):
                    at += size
            size //= 2
        profile = self.case.profile
        kinds = sorted({strike.name for strike in self.case.strikes})
        if profile.faults != kinds:
            self._try(replace(self.case, profile=replace(profile, faults=kinds)))

    def _strikes_before_failure(self) -> list[Strike]:
        assert self.case.strikes is not None
        return [strike for strike in self.case.strikes if strike.after <= self.report.virtual_ns]

    def _applications(self) -> None:
        if self.case.profile.failover is not None:  # otherwise its messages stand in for those of the others
            self._try(self._with(failover=None))
        if self.case.profile.transactions is not None:
            self._try(self._with(transactions=None))
        for name in (*GUESTS, *OF_SEVERAL, *EVENTS):
            for plan in getattr(self.case.profile, name):
                left = [each for each in getattr(self.case.profile, name) if each is not plan]
                self._try(self._with(**{name: left}))
        for index in reversed(range(len(self.case.profile.consumers))):
            self._try(self._without_consumer(index))
        for index in reversed(range(len(self._producers))):
            if len(self._producers) > 1:
                self._try(self._with(producers=self._producers[:index] + self._producers[index + 1 :]))
        for index in reversed(range(len(self.case.profile.subscriptions))):
            self._try(self._without_subscription(index))
        self._partitions()

    def _partitions(self) -> None:
        """No partitioned topic; else one that does not grow, of fewer partitions."""
        for index in reversed(range(len(self.case.profile.partitioned))):
            if not self._try(self._without_partitioned(index)):
                for growth in self.case.profile.partitioned[index].growth:
                    plan = self.case.profile.partitioned[index]
                    left = [each for each in plan.growth if each is not growth]
                    self._try(self._with_partitioned(index, replace(plan, growth=left)))
                while (plan := self.case.profile.partitioned[index]).partitions > 1:
                    fewer = replace(plan, partitions=plan.partitions - 1)
                    if not self._try(self._with_partitioned(index, fewer)):
                        break

    def _without_consumer(self, index: int) -> Case:
        """Leave out a consumer. The last one takes its subscription along.

        A subscription that no consumer drains is a failure of its own.
        """
        plans = self.case.profile.consumers
        left = plans[:index] + plans[index + 1 :]
        subscription = plans[index].subscription
        if not any(plan.subscription == subscription for plan in left):
            return self._without_subscription(subscription)
        return self._with(consumers=left)

    def _without_subscription(self, index: int) -> Case:
        profile = self.case.profile
        consumers = [
            replace(plan, subscription=plan.subscription - (plan.subscription > index))
            for plan in profile.consumers
            if plan.subscription != index
        ]
        subscriptions = profile.subscriptions[:index] + profile.subscriptions[index + 1 :]
        return self._with(subscriptions=subscriptions, consumers=consumers)

    def _messages(self) -> None:
        for index in range(len(self.case.profile.producers)):
            step = self.case.profile.producers[index].messages
            while step and not self._done():
                left = self.case.profile.producers[index].messages - step
                if left < 0 or not self._try(self._with_producer(index, messages=left)):
                    step //= 2

    def _sooner(self) -> None:
        """Very few messages, and the faults at a moment at which something is said about them."""
        strikes = self.case.strikes
        if not strikes or len(strikes) > MAX_MOVED:
            return
        for messages in FEW:
            plans = [replace(plan, messages=min(plan.messages, messages)) for plan in self._producers]
            if plans == self._producers:
                return
            for moment in self._moments(self._with(producers=plans)):
                sooner = [replace(each, after=moment + each.after - strikes[0].after) for each in strikes]
                smaller = self._with(producers=plans)
                if self._try(replace(smaller, strikes=sooner)):
                    return

    @property
    def _producers(self) -> list[ProducerPlan]:
        return self.case.profile.producers

    def _moments(self, case: Case) -> list[int]:
        """When a frame is written, while the applications run and nothing goes wrong: virtual nanoseconds
        since the beginning, and one more."""
        self.runs += 1
        transcript = replace(case, strikes=[]).run(keep_trace=True).transcript
        start = int(transcript[0].split(" ", 1)[0])
        moments: dict[int, None] = {}
        running = False
        for line in transcript:
            when, source, what = line.split(" ", 2)
            if source == "world":
                running = what == "phase run"
            elif running and " <- " in what:
                moments[int(when) - start + 1] = None
        return list(moments)

    def _places(self) -> None:
        """One client, one topic."""
        profile = self.case.profile
        groups = [
            replace(group, consumers=[replace(plan, client=0) for plan in group.consumers])
            for group in profile.groups
        ]
        if profile.clients > 1:
            names = ("producers", "consumers", *GUESTS, "multi_topics_seekers", "nonpersistent_apps")
            users_of_one = {
                name: [replace(plan, client=0) for plan in getattr(profile, name)] for name in names
            }
            self._try(self._with(clients=1, groups=groups, **users_of_one))
        profile = self.case.profile
        users: list[Any] = [plan for plan in profile.producers if plan.partitioned is None]
        users += profile.consumers
        for name in (*GUESTS, *EVENTS):
            users += getattr(profile, name)
        used = {plan.topic for plan in users if plan.topic < profile.topics}
        for group in [*profile.groups, *(plan.group for plan in profile.multi_topics_seekers)]:
            used |= set(range(profile.topics)) if group.pattern else set(group.topics)
        if len(used) <= 1 and profile.topics > 1:
            self._try(self._moved(0, 1))

    def _moved(self, topic: int, topics: int) -> Case:
        """Everybody on one topic; partitions, which are numbered behind all topics, move up."""
        profile = self.case.profile
        shift = profile.topics - topics

        def moved(plans: list[Any]) -> list[Any]:
            return [
                replace(plan, topic=topic if plan.topic < profile.topics else plan.topic - shift)
                for plan in plans
            ]

        names = ("producers", "consumers", "subscriptions", *GUESTS, *EVENTS)
        return self._with(topics=topics, **{name: moved(getattr(profile, name)) for name in names})

    def _features(self) -> None:
        profile = self.case.profile
        for name, value in PLAIN_PROFILE.items():
            if getattr(profile, name) != value:
                self._try(self._with(**{name: value}))
        while self.case.profile.run_time > SECOND // 10:
            if not self._try(self._with(run_time=self.case.profile.run_time // 2)):
                break
        self._brokers()
        self._broker()
        for index in range(len(profile.producers)):
            for name, value in PLAIN_PRODUCER.items():
                if getattr(self.case.profile.producers[index], name) != value:
                    self._try(self._with_producer(index, **{name: value}))
            self._producer(index)
        for index in range(len(profile.consumers)):
            for name, value in PLAIN_CONSUMER.items():
                if getattr(self.case.profile.consumers[index], name) != value:
                    self._try(self._with_consumer(index, **{name: value}))

    def _producer(self, index: int) -> None:
        """Leave out the parts of a needed feature that the failure does not need."""
        batching = self.case.profile.producers[index].batching
        if batching is not None and batching.by_key:
            self._try(self._with_producer(index, batching=replace(batching, by_key=False)))
        for kind in self.case.profile.producers[index].interceptors:
            left = [each for each in self.case.profile.producers[index].interceptors if each != kind]
            self._try(self._with_producer(index, interceptors=left))

    def _brokers(self) -> None:
        """One of the latest kind; else fewer, and each as plain as it may be."""
        if self.case.profile.brokers and self._try(self._with(brokers=[])):
            return
        for count in range(1, len(self.case.profile.brokers)):
            if self._try(self._with(brokers=self.case.profile.brokers[:count])):
                break
        for index in range(len(self.case.profile.brokers)):
            for name, value in PLAIN_BROKER.items():
                plans = list(self.case.profile.brokers)
                if getattr(plans[index], name) != value:
                    changed: Any = {name: value}
                    plans[index] = replace(plans[index], **changed)
                    self._try(self._with(brokers=plans))

    def _broker(self) -> None:
        if self.case.profile.deduplication:
            broker = replace(self.case.profile.broker, deduplication=False)
            self._try(self._with(deduplication=False, broker=broker))
        for each in fields(BrokerConfig):
            broker = self.case.profile.broker
            if each.name not in KEPT_BROKER_OPTIONS and getattr(broker, each.name) != each.default:
                changed: Any = {each.name: each.default}
                self._try(self._with(broker=replace(broker, **changed)))

    # --- smaller cases ---

    def _with(self, **changes: Any) -> Case:
        return replace(self.case, profile=replace(self.case.profile, **changes))

    def _with_producer(self, index: int, **changes: Any) -> Case:
        plans = list(self.case.profile.producers)
        plans[index] = replace(plans[index], **changes)
        return self._with(producers=plans)

    def _with_consumer(self, index: int, **changes: Any) -> Case:
        plans = list(self.case.profile.consumers)
        plans[index] = replace(plans[index], **changes)
        return self._with(consumers=plans)

    def _with_partitioned(self, index: int, plan: PartitionedPlan) -> Case:
        """Change the plan of a partitioned topic.

        With fewer partitions there are fewer topics: subscriptions and consumers of lost topics go, too.
        """
        plans = list(self.case.profile.partitioned)
        plans[index] = plan
        return self._on_existing(plans)

    def _without_partitioned(self, index: int) -> Case:
        """Leave out a partitioned topic and those behind it; its producers then send to a plain topic."""
        case = self._on_existing(self.case.profile.partitioned[:index])
        producers = [
            replace(plan, partitioned=None) if plan.partitioned == index else plan
            for plan in case.profile.producers
        ]
        return replace(case, profile=replace(case.profile, producers=producers))

    def _on_existing(self, partitioned: list[PartitionedPlan]) -> Case:
        profile = self.case.profile
        topics = profile.topics + sum(plan.partitions for plan in partitioned)
        kept = [index for index, plan in enumerate(profile.subscriptions) if plan.topic < topics]
        return self._with(
            partitioned=partitioned,
            subscriptions=[profile.subscriptions[index] for index in kept],
            consumers=[
                replace(plan, subscription=kept.index(plan.subscription))
                for plan in profile.consumers
                if plan.subscription in kept
            ],
        )


def _where(report: SeedReport) -> str:
    """An exception is the same one where its last line begins alike; an invariant is named by its rule."""
    if report.outcome is not Outcome.EXCEPTION:
        return ""
    return report.text.strip().splitlines()[-1].partition(":")[0]


def shrink(
    seed: int,
    enough: Callable[[], bool] = lambda: False,
    limit: int = MAX_RUNS,
    watch: Callable[[Shrinker], None] = lambda _: None,
) -> Shrunk:
    """The smallest world found that fails as the seed does. Raises `ValueError` where the seed passes."""
    return Shrinker(Case.of_seed(seed), enough, limit, watch).shrink()


# --- telling it --------------------------------------------------------------------------------------------


def describe(case: Case) -> list[str]:
    """The world in a few lines: only what is not plain."""
    profile = case.profile
    lines = [
        f"seed {case.seed}: {profile.clients} clients, {profile.topics} topics, "
        f"{profile.messages} messages; {_differences(profile, PLAIN_PROFILE) or 'plain network'}"
    ]
    changed = [
        f"{each.name}={getattr(profile.broker, each.name)}"
        for each in fields(BrokerConfig)
        if each.name not in ("service_url",) and getattr(profile.broker, each.name) != each.default
    ]
    lines.append(f"broker: {' '.join(changed) or 'plain'}")
    for name in ("brokers", "partitioned", "appearances", *GUESTS, *OF_SEVERAL, *EVENTS):
        lines += [f"{name}: {each}" for each in getattr(profile, name) if each != BrokerPlan()]
    lines += _plans("producer", profile.producers, PLAIN_PRODUCER)
    for index, subscription in enumerate(profile.subscriptions):
        lines.append(f"subscription sub-{index} of t{subscription.topic}: {subscription.kind.value}")
    lines += _plans("consumer", profile.consumers, PLAIN_CONSUMER)
    for strike in case.strikes or ():
        lines.append(f"fault {_milliseconds(strike.after)} {strike.name}")
    return lines


def _plans(what: str, plans: Sequence[ProducerPlan | ConsumerPlan], plain: dict[str, Any]) -> list[str]:
    lines = []
    for index, plan in enumerate(plans):
        place = f"client {plan.client}, t{plan.topic}"
        if isinstance(plan, ProducerPlan):
            place += f", {plan.messages} messages"
        else:
            place += f", sub-{plan.subscription}"
        lines.append(f"{what} {index} ({place}): {_differences(plan, plain) or 'plain'}")
    return lines


def _differences(value: "Profile | ProducerPlan | ConsumerPlan", plain: dict[str, Any]) -> str:
    return " ".join(
        f"{name}={getattr(value, name)}" for name, usual in plain.items() if getattr(value, name) != usual
    )


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / MILLISECOND:.3f} ms"


def readable(transcript: list[str]) -> list[str]:
    """The lines of a trace from the moment the applications begin: time, actor, event.

    Bytes that arrive and wake-ups are left out, since the frames say it better. Many frames of a kind in a
    row are shown by the first and the last.
    """
    lines: list[str] = []
    begun = False
    start = int(transcript[0].split(" ", 1)[0]) if transcript else 0
    previous, repeated = "", 0
    for line in transcript:
        when, source, what = line.split(" ", 2)
        what = what.strip()
        begun = begun or (source == "world" and what == "phase run")
        if not begun or what == "wake" or (what.endswith(" bytes") and " data " in what):
            continue
        text = f"{_milliseconds(int(when) - start):>14} {source:12} {what}"
        if len(text) > LONGEST_LINE:
            text = text[: LONGEST_LINE - 2] + " …"
        kind = " ".join([source, *what.split(" ")[:4]]) if " <- " in what else ""
        repeated = repeated + 1 if kind and kind == previous else 0
        previous = kind
        if repeated > 1:
            lines.pop()
            if repeated > 2:
                lines.pop()
            lines.append(f"{'':14} {'':12} … {repeated - 1} more …")
        lines.append(text)
    return lines
