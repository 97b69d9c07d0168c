"""SEND frames: the metadata and the encoded payload."""

import pytest

from pulsar_sansio.model.config import CompressionType
from pulsar_sansio.wire import decompress, unpack_payload
from tests.client.producing.sender import UNBATCHED, Sender


@pytest.mark.parametrize("payload", [b"", b"x" * 100], ids=["empty", "not empty"])
def test_with_a_codec_every_payload_is_compressed(payload: bytes) -> None:
    """PROD-34, PROD-39: empty payloads are compressed, too."""
    sender = Sender(spec=UNBATCHED, compression=CompressionType.ZLIB)
    sender.send(payload)
    (send,) = sender.sent()
    metadata, data = unpack_payload(send.payload)[-2:]
    assert (metadata.compression, metadata.uncompressed_size) == (CompressionType.ZLIB, len(payload))
    assert decompress(CompressionType.ZLIB, bytes(data), len(payload), 1000) == payload
