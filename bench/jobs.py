"""Jobs and measurements, in words that both clients' processes understand.

Each client runs in a process of its own. It takes one job after the other as a line of JSON and answers each
with a measurement. So a client's figure has the processor time of all its threads, and of no others.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

RECEIVER_QUEUE_SIZES = {True: 10_000, False: 1000}
"""Messages, for both clients: True with batches, False without. Ten batches are enough to limit no client."""

MAX_PENDING_MESSAGES = 20_000
"""Messages, for both clients."""

BATCH_MESSAGES = 1000
BATCH_BYTES = 4 * 1024 * 1024
"""Never the limit: a batch of 1000 messages of 1 KB is a fourth of it."""

BATCH_DELAY = 0.1
"""Seconds. Never the limit either: every count is a multiple of 1000."""

KEYS = [f"key-{number}" for number in range(100)]
"""Keys of `send_keyed`, `receive_key_shared` and `load_table`, used in turn."""

LARGE_TABLE = ("load_large_table", "fill_large_table")
"""Workloads with a key for every message."""

KEY_SHARED_CONSUMERS = 4
"""Consumers of `receive_key_shared`, all in one process."""

SMALL_TABLES = 10
"""Times that `load_table` loads its table, by a new client each: one of them takes a few milliseconds."""

CUMULATIVE_EVERY = 100
"""Messages, of `receive_cumulative`."""

SEND_TIMEOUT = 30.0
"""Seconds for `send_chunked` with both clients. Some brokers announce a larger size than their store takes,
and fail every time. The other rows have no limit, because any broker takes them."""

JOB_TIMEOUT = 300.0
"""Seconds for one job; the slowest takes a few."""

CHUNKED_TIMEOUT = 50.0
"""Seconds for a job of `send_chunked`: the official client may wait for ever after its send timeout."""

PUBLIC_KEY, PRIVATE_KEY = "public.pem", "private.pem"
"""Files of a key pair, in `Job.key_pair`."""

KEY_NAME = "bench"
"""The name of the key pair, which stands in every encrypted message."""

WARM_QUEUES = 2
"""Queues full of messages that are sent or received before the clock starts: what was fetched in advance must
not be in a receiver's figure."""


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to do, over one topic.

    `workload`: prepare (make subscriptions), fill, fill_keyed and fill_large_table (send, not measured), or
    what a row is called. `messages` are timed, after `warm` others of the same kind.
    """

    url: str
    workload: str
    topic: str
    size: int
    batched: bool
    messages: int
    warm: int
    subscription: str = ""
    subscriptions: tuple[str, ...] = ()
    trust: str = ""
    """The PEM file of the authorities that the client trusts; "" for a broker without TLS."""
    form: str = ""
    """One of `bench.rows.FORMS`; "" for bytes as they are."""
    key_pair: str = ""
    """The folder of the key pair for payloads that are encrypted; "" for others."""

    @property
    def receiver_queue_size(self) -> int:
        return RECEIVER_QUEUE_SIZES[self.batched]

    @property
    def send_timeout(self) -> float:
        """Seconds; 0 is for ever."""
        return SEND_TIMEOUT if self.workload == "send_chunked" else 0.0

    @property
    def limit(self) -> float:
        """Seconds after which the client's process is killed."""
        return CHUNKED_TIMEOUT if self.workload == "send_chunked" else JOB_TIMEOUT

    @property
    def payload(self) -> bytes:
        return bytes(97 + i % 26 for i in range(self.size))

    @property
    def typed(self) -> bool:
        """True where values of a schema are sent and looked at."""
        return self.form in ("Avro", "JSON")

    @property
    def public_key(self) -> Path:
        return Path(self.key_pair) / PUBLIC_KEY

    @property
    def private_key(self) -> Path:
        return Path(self.key_pair) / PRIVATE_KEY

    @property
    def tables(self) -> int:
        """The number of times that the job loads its table."""
        return 1 if self.workload in LARGE_TABLE else SMALL_TABLES

    @property
    def keys(self) -> list[str]:
        """The keys of messages, used in turn."""
        return [f"key-{number}" for number in range(self.messages)] if self.workload in LARGE_TABLE else KEYS


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of one job. Processor seconds are those of the client's process, of all its threads."""

    messages: int
    seconds: float
    """Seconds by the clock."""
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def cpu_us(self) -> float:
        """Microseconds of processor time per message."""
        return self.cpu_seconds / self.messages * 1e6


class Stopwatch:
    """`with stopwatch:` around what is timed; several times add up."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    def start(self) -> None:
        self._cpu = _cpu_seconds()
        self._start = time.perf_counter()

    def stop(self) -> None:
        self.seconds += time.perf_counter() - self._start
        self.cpu_seconds += _cpu_seconds() - self._cpu

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def measurement(self, messages: int) -> Measurement:
        return Measurement(messages, self.seconds, self.cpu_seconds)


class Progress:
    """Counts messages for callbacks that get one after the other.

    The clock runs from the last warm-up message to the last of all. `done` is called then.
    """

    def __init__(self, job: Job, stopwatch: Stopwatch, done: Callable[[], object]) -> None:
        self._stopwatch = stopwatch
        self._done = done
        self._until_start = job.warm
        self._until_end = job.warm + job.messages
        if not job.warm:
            stopwatch.start()

    def note(self) -> None:
        """Count one message more."""
        self._until_start -= 1
        self._until_end -= 1
        if not self._until_start:
            self._stopwatch.start()
        elif not self._until_end:
            self._stopwatch.stop()
            self._done()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def serve(run: Callable[[Job], Measurement]) -> None:
    """The main loop of a client's process: jobs from standard input, measurements to standard output."""
    for line in sys.stdin:
        fields = json.loads(line)
        job = Job(**{**fields, "subscriptions": tuple(fields["subscriptions"])})
        try:
            answer: dict[str, object] = asdict(run(job))
        except Exception as error:  # whatever a client raises is the answer; the parent shows it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
