"""A TLS handshake in memory, between two contexts."""

import ssl


def handshake(client: ssl.SSLContext, server: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Shake hands and return both sides. Raises the error of the side that fails first."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    far = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [near, far]
    while waiting:
        waiting = [side for side in waiting if not _finishes(side)]
    return near, far


def _finishes(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
