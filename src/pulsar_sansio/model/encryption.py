"""Values of end-to-end encryption: `EncryptionKeyInfo`, and what a producer or consumer does on failure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .config.checks import text_mapping
from .errors import InvalidConfiguration
from .secret import Secret


@dataclass(frozen=True, slots=True)
class EncryptionKeyInfo:
    """One key, as a key reader returns it.

    `key`: a public or a private key as PEM text. `metadata`: of a public key, text that travels with every
    message, so that consumers find the private key by it. Raises `InvalidConfiguration`.
    """

    key: Secret
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.key, Secret):
            raise InvalidConfiguration(f"key: a Secret, not {type(self.key).__name__}")
        text_mapping("metadata", self.metadata)
