"""The rows of a run: a workload, the size and form of a payload, and whether messages are sent in batches."""

from dataclasses import dataclass

SIZES = (100, 1000)
"""Bytes of a payload."""

CHUNKED_SIZE = 5 * 1024 * 1024 + 1000
"""Bytes: a little more than a broker accepts in one message."""

SHARES = {(100, True): 1, (1000, True): 4, (100, False): 10, (1000, False): 10}
"""Divisors of MESSAGES, by size and by batching. Large and unbatched messages take longer, and a broker keeps
all that it gets."""


FORMS = ("Avro", "JSON", "encrypted")
"""Other forms of payloads than bytes as they are: values of a schema, and bytes that are encrypted for an RSA
key. They are sent and received one by one."""

FORM_SHARE = 2
"""Divisor of messages that have a form: those take longer."""


@dataclass(frozen=True, slots=True)
class Row:
    workload: str
    size: int
    batched: bool
    form: str = ""
    """One of `FORMS`; "" for bytes as they are."""

    @property
    def name(self) -> str:
        name = self.workload if self.batched or self in SPECIAL else f"{self.workload}, unbatched"
        return f"{name}, {self.form}" if self.form else name

    def messages(self, total: int) -> int:
        """The number of messages that this row times, where the row of 100 B in batches times `total`."""
        if self in SPECIAL:
            return max(SPECIAL[self][0], total // SPECIAL[self][1])
        share = SHARES[self.size, self.batched] * (FORM_SHARE if self.form else 1)
        return max(1000, total // share // 1000 * 1000)


SPECIAL = {
    Row("send_keyed", 100, True): (1000, 1),
    Row("send_partitioned", 100, True): (1000, 1),
    Row("send_chunked", CHUNKED_SIZE, False): (4, 5000),
    Row("send_one", 100, False): (100, 100),
    Row("receive_key_shared", 100, True): (1000, 1),
    Row("load_table", 100, True): (1000, 200),
    Row("load_large_table", 100, True): (1000, 2),
}
"""Rows of one size: the least number of messages, and what MESSAGES is divided by. The small table, of 100
keys in batches of ten messages, shows what opening one costs, with its connection and questions. The large
one, of as many keys as messages, in batches of 1000, shows what a message costs."""
