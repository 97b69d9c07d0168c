"""`RedirectWatch`: lookups that a broker redirects, and the lookups that follow (INV-N8)."""

from ..engine.failures import ViolationError


class RedirectWatch:
    """The redirects in the current input of a client. The client follows each within that input."""

    def __init__(self) -> None:
        self._redirected: dict[tuple[str, str], tuple[bool, int]] = {}
        """By client and topic: whether authoritative, and the number of redirects in a row."""
        self._asks_anew = False
        """The current input answers a request for partitions, which the client then looks up for the first
        time."""

    def lookup(self, client: str, topic: str, authoritative: bool, limit: int) -> int:
        """Return how many redirects in a row the lookup follows. It repeats the authoritative flag, and the
        redirects end."""
        redirected = self._redirected.pop((client, topic), None)
        if redirected is None or not (authoritative or not self._asks_anew):
            return 0
        expected, times = redirected
        if authoritative is not expected:
            raise ViolationError(
                "INV-N8",
                f"{client}: the redirect of {topic} said authoritative={expected}, the next lookup does not",
            )
        if times > limit:
            raise ViolationError("INV-N8", f"{client}: {topic} is redirected for ever")
        return times

    def redirected(self, client: str, topic: str, authoritative: bool, times: int) -> None:
        """A lookup was answered with the `times`-th redirect in a row."""
        self._redirected[client, topic] = (authoritative, times)

    def got_partitions(self) -> None:
        """A request for partitions was answered."""
        self._asks_anew = True

    def settled(self) -> None:
        """The client has handled the input."""
        if self._redirected:
            self._redirected.clear()
        self._asks_anew = False
