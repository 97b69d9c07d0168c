"""A client of the bench that measures nothing."""

from bench.jobs import Job, Measurement
from bench.processes import ClientProcess


class Client(ClientProcess):
    """Remembers its jobs in a list shared with the other client, and answers at a given rate."""

    def __init__(self, name: str, rates: list[float], jobs: list[tuple[str, Job]]) -> None:
        super().__init__(name)
        self.rates = rates
        self.jobs = jobs
        self.renewed = 0

    def renew(self) -> None:
        self.renewed += 1

    def run(self, job: Job) -> Measurement:
        self.jobs.append((self.module, job))
        if job.workload == "prepare" or job.workload.startswith("fill"):
            return Measurement(0, 0.0, 0.0)
        rate = self.rates.pop(0)
        return Measurement(job.messages, job.messages / rate, job.messages * 1e-6)
