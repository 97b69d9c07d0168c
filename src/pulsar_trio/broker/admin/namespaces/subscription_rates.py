"""The dispatch rate of one subscription over HTTP: a policy of its topic, which may lack the subscription."""

from pulsar_sansio import MessageRate, NotFound, Policies, SubscriptionRates

from ..messages import NO_CONTENT, NOTHING_SET, Answer, Request, answering, json_answer
from ..routes import AdministeredBroker, Route
from ..topics import TOPIC
from .rates import NO_DISPATCH_RATE, parse_dispatch, show_dispatch

_PATH = f"{TOPIC.replace('{domain}', 'persistent')}/{{subscription}}/dispatchRate"


def _policies(broker: AdministeredBroker, request: Request) -> Policies:
    topic = request.topic
    with answering((NotFound, 404, f"Topic {topic} not found")):
        return broker.machine.administration.policies_of(topic, applied=request.flag("applied"))


def _read(broker: AdministeredBroker, request: Request) -> Answer:
    policies, subscription = _policies(broker, request), request.text("subscription")
    if request.flag("applied"):
        applied = policies.dispatch_rate_of(subscription)
        return json_answer(NO_DISPATCH_RATE if applied is None else show_dispatch(applied))
    own = None if policies.dispatch_rates is None else policies.dispatch_rates.of(subscription)
    return NOTHING_SET if own is None else json_answer(show_dispatch(own))


def _set(broker: AdministeredBroker, request: Request) -> Answer:
    given = request.json() if request.body else None
    return _replace(broker, request, None if given is None else parse_dispatch(given))


def _remove(broker: AdministeredBroker, request: Request) -> Answer:
    return _replace(broker, request, None)


def _replace(broker: AdministeredBroker, request: Request, rate: MessageRate | None) -> Answer:
    present = _policies(broker, request).dispatch_rates or SubscriptionRates(())
    rates = present.replacing(request.text("subscription"), rate)
    set_policy = broker.machine.administration.set_policy
    broker.command(set_policy, request.topic, "dispatch_rates", rates)
    return NO_CONTENT


ROUTES: list[Route] = [("GET", _PATH, _read), ("POST", _PATH, _set), ("DELETE", _PATH, _remove)]
