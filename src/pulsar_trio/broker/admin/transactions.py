"""Transactions: coordinators, what is open, what takes part in it, and the end of one by force.

The paths are those of a Java broker of version 4.0. All of them refuse with 503 where transactions are
disabled.
"""

from functools import wraps

from pulsar_sansio import NotFound, TransactionId

from .messages import NO_CONTENT, Answer, Refused, Request, answering, json_answer, path_number, whole_number
from .routes import AdministeredBroker, Handler, Route

TRANSACTIONS = "/admin/v3/transactions"
_TOPIC = "{tenant}/{namespace}/{topic}"
_SUBSCRIPTION = f"{_TOPIC}/{{subscription}}"
_ID = "{most}/{least}"

DISABLED = "This Broker is not configured with transactionCoordinatorEnabled=true."


def _id(request: Request) -> TransactionId:
    most, least = (path_number(request.text(name), signed=True) for name in ("most", "least"))
    return TransactionId(most, least)


def _coordinator(request: Request) -> int | None:
    """Return the coordinator that the query names; None is all of them."""
    text = request.query.get("coordinatorId")
    return None if text is None else path_number(text, signed=True)


def _no_coordinator(coordinator: int | None) -> tuple[type[NotFound], int, str]:
    return NotFound, 404, f"Transaction coordinator not found! coordinator id : {coordinator}"


# --- coordinators and their transactions --------------------------------------------------------------


def list_coordinators(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer(broker.machine.transaction_administration.coordinators())


def coordinator_stats(broker: AdministeredBroker, request: Request) -> Answer:
    """The stats of one coordinator, or those of all by their ids."""
    stats = broker.machine.transaction_administration.coordinator_stats
    coordinator = _coordinator(request)
    if coordinator is None:
        return json_answer({str(each): stats(each) for each in range(broker.machine.coordinators.count)})
    with answering(_no_coordinator(coordinator)):
        return json_answer(stats(coordinator))


def metadata(broker: AdministeredBroker, request: Request) -> Answer:
    return json_answer(broker.machine.transaction_administration.transaction_metadata(_id(request)))


def slow(broker: AdministeredBroker, request: Request) -> Answer:
    timeout = path_number(request.text("timeout"), signed=True)
    coordinator = _coordinator(request)
    with answering(_no_coordinator(coordinator)):
        return json_answer(broker.machine.transaction_administration.slow_transactions(timeout, coordinator))


def abort(broker: AdministeredBroker, request: Request) -> Answer:
    broker.command(broker.machine.transaction_administration.abort_transaction, _id(request))
    return NO_CONTENT


def scale(broker: AdministeredBroker, request: Request) -> Answer:
    """Refuse to change the number of coordinators, which the configuration has."""
    if whole_number(request.json()) <= broker.machine.coordinators.count:
        raise Refused(
            406,
            "Number of transaction coordinators should be more than the current number of transaction "
            "coordinator",
        )
    raise Refused(501, "adding transaction coordinators is not implemented by this broker")


# --- topics and subscriptions -------------------------------------------------------------------------


def _with_low_water_marks(request: Request, stats: dict[str, object]) -> Answer:
    """Add the low water marks where the query wants them; this broker has none in topics."""
    return json_answer(stats | {"lowWaterMarks": {}} if request.flag("lowWaterMarks") else stats)


def buffer_stats(broker: AdministeredBroker, request: Request) -> Answer:
    stats = broker.machine.transaction_administration.transaction_buffer_stats(request.topic)
    return _with_low_water_marks(request, stats)


def in_buffer(broker: AdministeredBroker, request: Request) -> Answer:
    administration = broker.machine.transaction_administration
    return json_answer(administration.transaction_in_buffer_stats(request.topic, _id(request)))


def pending_ack_stats(broker: AdministeredBroker, request: Request) -> Answer:
    administration = broker.machine.transaction_administration
    stats = administration.pending_ack_stats(request.topic, request.text("subscription"))
    return _with_low_water_marks(request, stats)


def in_pending_acks(broker: AdministeredBroker, request: Request) -> Answer:
    administration = broker.machine.transaction_administration
    return json_answer(
        administration.transaction_in_pending_ack_stats(
            request.topic, request.text("subscription"), _id(request)
        )
    )


def position_in_pending_acks(broker: AdministeredBroker, request: Request) -> Answer:
    ledger_id, entry_id = (path_number(request.text(name), signed=True) for name in ("ledger", "entry"))
    index = request.query.get("batchIndex")
    state = broker.machine.transaction_administration.position_in_pending_acks(
        request.topic,
        request.text("subscription"),
        ledger_id,
        entry_id,
        None if index is None else path_number(index, signed=True),
    )
    return json_answer({"state": state})


def _enabled(handler: Handler) -> Handler:
    """Refuse the request where the broker has no coordinators."""

    @wraps(handler)
    def checked(broker: AdministeredBroker, request: Request) -> Answer:
        if not broker.machine.coordinators.count:
            raise Refused(503, DISABLED)
        return handler(broker, request)

    return checked


ROUTES: list[Route] = [
    (method, f"{TRANSACTIONS}/{path}", _enabled(handler))
    for method, path, handler in (
        ("GET", "coordinators", list_coordinators),
        ("GET", "coordinatorStats", coordinator_stats),
        ("GET", f"transactionMetadata/{_ID}", metadata),
        ("GET", "slowTransactions/{timeout}", slow),
        ("POST", f"abortTransaction/{_ID}", abort),
        ("POST", "transactionCoordinator/replicas", scale),
        ("GET", f"transactionBufferStats/{_TOPIC}", buffer_stats),
        ("GET", f"transactionInBufferStats/{_TOPIC}/{_ID}", in_buffer),
        ("GET", f"pendingAckStats/{_SUBSCRIPTION}", pending_ack_stats),
        ("GET", f"transactionInPendingAckStats/{_SUBSCRIPTION}/{_ID}", in_pending_acks),
        ("GET", f"positionStatsInPendingAck/{_SUBSCRIPTION}/{{ledger}}/{{entry}}", position_in_pending_acks),
    )
]
