"""The plan of end-to-end encryption in a world: its keys, its key readers, and what happens without a key."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class EncryptionPlan:
    """Producers that encrypt, consumers that decrypt, and key readers of any kind. The key readers of
    applications that read without losing anything (seekers, table views, the auditor) always have the key in
    time."""

    recipients: int = 1
    """Key pairs for which each message is encrypted."""
    clear_permille: int = 0
    """Openings of producers that do not encrypt, per thousand."""
    sends_in_clear: bool = False
    """Producers send unencrypted messages while they have no key; otherwise they fail to open."""
    delay: int = 0
    """Nanoseconds that a key reader takes, at most."""
    late_permille: int = 0
    """Questions that are answered after the operation timeout, per thousand."""
    refused_permille: int = 0
    """Questions that are answered with an error, per thousand."""
    wrong_permille: int = 0
    """Questions that are answered with another key, per thousand."""
    missing: int = 0
    """Nanoseconds from the start of the applications for which no private key is there."""
    rotation: int = 0
    """Nanoseconds after which each key pair is replaced by a new version; 0 means never."""
    renewal: int = 0
    """Nanoseconds between two data keys of one producer; 0 leaves the four hours of the client."""
    keyless_permille: int = 0
    """Openings of consumers without a key reader, per thousand."""
    actions: list[str] = field(default_factory=lambda: ["fail"])
    """Failure actions of the consumers, in turn: "fail", "discard" or "consume"."""
    letters: bool = False
    """Dead letters and retry letters are encrypted too."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the keys."""
        return tuple(f"key-{index}" for index in range(self.recipients))
