"""The processes of a run: a client that works on jobs, and our broker where no other is named."""

import json
import resource
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.certificates import Certificates
from bench.jobs import Job, Measurement

STACK = 8_000_000_000
"""Bytes of address space, not of memory, for the stack of each thread of a client that needs it deep."""

ATTEMPTS = 5
"""Attempts at a job that ends its process now and then."""


class Failed(Exception):
    """A process did not do its work; one line that says which and why."""


class Died(Failed):
    """The process ended during its job."""


class ClientProcess:
    """`python -m bench.ours` or `python -m bench.official`, for the whole run."""

    def __init__(self, module: str, *, deep: bool = False) -> None:
        """`deep`: with `STACK` for its threads, as far as that is allowed."""
        self.module = module
        self._deep = deep

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_deepen if self._deep else None,
        )
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.communicate()

    def run_apart(self, job: Job) -> Measurement:
        """Run a job in a process of its own, with deep stacks. If that one dies, try again in another one."""
        for _ in range(ATTEMPTS - 1):
            with suppress(Died), ClientProcess(self.module, deep=True) as process:
                return process.run(job)
        with ClientProcess(self.module, deep=True) as process:
            return process.run(job)

    def renew(self) -> None:
        """End the process; the next job gets another one."""
        self.process.kill()
        self.process.wait()

    def run(self, job: Job) -> Measurement:
        """Raises `Failed` with what the client raised, `Died` where its process has ended at this job."""
        if self.process.poll() is not None:  # at the job before
            self.__exit__(None, None, None)
            self.__enter__()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(asdict(job)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Died(f"{self.module} has ended") from None
        limit = threading.Timer(job.limit, self.process.kill)
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        if not line:
            raise Died(f"{self.module} ended, or took more than {job.limit:.0f} s, at {job.workload}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(f"{self.module}, {job.workload} of {job.size} B: {answer['error']}")
        return Measurement(**answer)


def _deepen() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    most = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (most, hard))


class OurBroker:
    """`pulsar-trio broker` on free ports, as a context manager; `url` and `tls_url` are where it listens."""

    def __init__(self, files: Certificates) -> None:
        self._files = files

    def __enter__(self) -> Self:
        command = Path(sys.executable).with_name("pulsar-trio")
        self.process = subprocess.Popen(
            [
                *(str(command), "broker", "--port", "0", "--http-port", "0", "--tls-port", "0", "--json"),
                *("--tls-certificate", str(self._files.certificate), "--tls-key", str(self._files.key)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"our broker did not start: exit status {self.process.wait()}")
        ready = json.loads(line)
        self.url: str = ready["url"]
        self.admin_url: str = ready["admin_url"]
        self.tls_url: str = ready["tls_url"]
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
