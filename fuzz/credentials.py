"""Credentials of liars: steps of a handshake, JSON Web Tokens, and subjects of certificates.

Every check here knows the right answer without the code under test. The secrets of this module are in no input,
so credentials made of bytes may never connect. A signature is verified by `hmac` alone.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from fuzz.draws import Draws
from fuzz.mutations import frame
from pulsar_sansio import (
    AuthenticationError,
    Broker,
    BrokerAuthentication,
    BrokerConfig,
    CertificateProvider,
    Challenge,
    Client,
    ClientConfig,
    CredentialsFailed,
    Identity,
    MemoryStore,
    Secret,
    broker_outputs,
    client_outputs,
)
from pulsar_sansio.wire import FrameDecoder, max_frame_size, proto
from pulsar_security import common_name
from pulsar_trio import TokenProvider

SECOND = 1_000_000_000

WALL = 1_700_000_000_000

LIMIT = max_frame_size(64 * 1024)

STEPS = 24
"""Inputs of one conversation."""

MAX_OUTPUTS = 8
"""Outputs that one input may bring: to write, to ask for credentials, to end, and outcomes."""

METHODS = ("steps", "token", "none", "", "steps\0", "STEPS")

Command = proto.BaseCommand


# --- challenges ---------------------------------------------------------------------------------------


def challenges(data: bytes) -> None:
    """AUTH_CHALLENGE to a client, or CONNECT and AUTH_RESPONSE to a broker, with any method and any bytes."""
    draws = Draws.of_bytes(data)
    if draws.below(2):
        _challenge_client(draws)
    else:
        _answer_broker(draws)


def _challenge_client(draws: Draws) -> None:
    """The client asks its driver for the answer to each legal challenge, and never twice for one."""
    client = Client(0, ClientConfig("pulsar://home", authentication_method="steps"), seed=1)
    client.open_producer(0, _producer())
    now = 0
    links: list[int] = []
    waiting: set[int] = set()
    sent = asked = 0
    for _ in range(STEPS):
        for output in _outputs(client):
            match output:
                case client_outputs.Connect(link):
                    links.append(link)
                case client_outputs.CredentialsWanted(link, broker, method, challenge):
                    assert link not in waiting, "two questions of one link at a time"
                    assert (broker.host, method) == ("home", "steps")
                    assert challenge is None or len(challenge) <= LIMIT
                    waiting.add(link)
                    asked += 1
                case client_outputs.Disconnect(link):
                    waiting.discard(link)
                case client_outputs.Transmit(link):
                    sent += _credentials_in(client.data_to_send(link))
        assert sent <= asked, "credentials that were not asked for"
        if not links:
            now += SECOND
            client.handle_deadline(now)
            continue
        link = links[-1]
        match draws.below(6):
            case 0:
                if link in client.links and len(links) > len(set(links) & _opened(client)):
                    _open(client, now, link)
            case 1:
                if link in waiting:
                    waiting.discard(link)
                    client.provide_credentials(now, link, Secret(draws.blob(draws.below(40))))
            case 2:
                if link in waiting:
                    waiting.discard(link)
                    client.refuse_credentials(now, link, CredentialsFailed("no"))
            case 3 | 4:
                client.receive_data(now, link, _challenge(draws))
            case _:
                answer = proto.CommandConnected(server_version="s", protocol_version=21)
                client.receive_data(now, link, _framed(Command.CONNECTED, answer))
    for link in client.links:
        client.disconnected(now, link, "the end")
