"""An issuer of OAuth 2.0 on this machine, in a thread of its own, for tests that do not run in trio."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import trio

from tests.patience import PATIENCE
from tests.security.secure_pulsar import token_of
from tests.trio.security.issuer import LocalIssuer, open_issuer


@contextmanager
def issuing() -> Iterator[LocalIssuer]:
    """An issuer while the block lasts; `LocalIssuer.answers` says what it answers."""
    opened: SimpleQueue[tuple[LocalIssuer, trio.CancelScope, trio.lowlevel.TrioToken]] = SimpleQueue()

    async def serve() -> None:
        with trio.CancelScope() as scope:
            async with open_issuer() as issuer:
                opened.put((issuer, scope, trio.lowlevel.current_trio_token()))
                await trio.sleep_forever()

    thread = threading.Thread(target=trio.run, args=(serve,))
    thread.start()
    issuer, scope, token = opened.get(timeout=PATIENCE)
    try:
        yield issuer
    finally:
        token.run_sync_soon(scope.cancel)
        thread.join(PATIENCE)


def issue_tokens(issuer: LocalIssuer, role: str, secret: str, lifetime: int) -> None:
    """Issue tokens of `secure_pulsar` that live so many seconds, to clients that have this secret."""

    def answer(form: dict[str, str]) -> tuple[int, object]:
        if form.get("client_secret") != secret:
            return 401, {"error": "invalid_client"}
        return 200, {"access_token": token_of(role, lifetime), "expires_in": lifetime}

    issuer.tokens()
    issuer.answers["/token"] = answer
