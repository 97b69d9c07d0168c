"""`ServiceUrlSource`: asks the application for the service URL, at the opening and after failed attempts.

It decides nothing about the URL: the machine does, as with `update_service_url`.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from pulsar_sansio import InvalidServiceUrl

from ..application_function import ApplicationFunction, described

ServiceUrlProvider: TypeAlias = Callable[[], str | Awaitable[str]]
"""A function (an async one, too) that returns a service URL."""

PAUSE = 1.0
"""Seconds from one answer to the next question. A thousand producers whose attempts fail ask once."""


class ServiceUrlSource:
    """The provider of one client, which is asked once at a time."""

    def __init__(self, provider: ServiceUrlProvider) -> None:
        self._provider = ApplicationFunction(provider)
        self._wanted = trio.Event()

    async def ask(self) -> str:
        """Return the provider's answer. Its exceptions are raised unchanged."""
        url = await self._provider.call()
        if not isinstance(url, str):
            raise InvalidServiceUrl(f"the provider returned {type(url).__name__}, not the text of a URL")
        return url

    def ask_soon(self) -> None:
        """An attempt to connect has failed: `run` asks as soon as it may."""
        self._wanted.set()

    async def run(self, seconds: float, use: Callable[[str], None], report: Callable[[str], None]) -> None:
        """Ask whenever `ask_soon` was called. `use` gets each answer, and `report` the text of each failure.

        `seconds`: the time that the provider has for one answer.
        """
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            try:
                with trio.fail_after(seconds):
                    url = await self.ask()
                use(url)
            except trio.TooSlowError:
                report(f"the provider did not answer within {seconds:g} s")
            except Exception as error:
                report(described(error))
            await trio.sleep(PAUSE)
