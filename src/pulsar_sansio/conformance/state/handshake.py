"""`Handshake`: what client and broker agreed on."""

from typing import Any


class Handshake:
    """The offers of client and broker until CONNECTED, and the challenges."""

    __slots__ = (
        "broker_flags", "challenge_rounds", "challenges", "client_flags", "client_version", "connect_seen",
    )  # fmt: skip

    def __init__(self) -> None:
        self.connect_seen = False
        self.client_version = 0
        self.client_flags: Any = None
        self.broker_flags: Any = None
        self.challenges = 0
        """AUTH_CHALLENGEs without response."""
        self.challenge_rounds = 0
        """AUTH_CHALLENGEs before CONNECTED."""
