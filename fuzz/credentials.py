"""Credentials of liars: steps of a handshake, JSON Web Tokens, and subjects of certificates.

Every check here knows the right answer without the code under test. The secrets of this module are in no
input, so credentials made of bytes may never connect. A signature is verified by `hmac` alone.
"""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
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
    ProducerSpec,
    Secret,
    broker_outputs,
    client_outputs,
)
from pulsar_sansio.broker.security.authenticator import Authenticator
from pulsar_sansio.broker.security.authorization import Authorization
from pulsar_sansio.wire import FrameDecoder, max_frame_size, proto
from pulsar_sansio.wire.command_frame import frame_command
from pulsar_security import common_name
from pulsar_trio import TokenProvider

SECOND = 1_000_000_000

WALL = 1_700_000_000_000

LIMIT = max_frame_size(512 * 1024)

STEPS = 40
"""Inputs of one conversation."""

MAX_OUTPUTS = 8
"""Outputs that one input may bring: to write, to ask for credentials, to end, and outcomes."""

METHODS = (*["steps"] * 8, "token", "none", "", "steps\0", "STEPS")

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
    """The client asks its driver for the answer to each challenge, and never sends what was not provided."""
    client = Client(0, ClientConfig("pulsar://home", authentication_method="steps"), seed=1)
    now, link = 0, 0
    waiting = opening = False
    provided = sent = 0
    for _ in range(STEPS):
        if not opening:
            opening = True
            client.open_producer(now, ProducerSpec("t"))
        for output in _outputs(client):
            match output:
                case client_outputs.Connect(link):
                    waiting = False
                    provided = sent = 0
                    client.connected(now, link)
                case client_outputs.CredentialsWanted(_, broker, "steps", challenge):
                    assert not waiting, "two questions at a time"
                    assert broker.host == "home"
                    assert challenge is None or len(challenge) < LIMIT
                    waiting = True
                case client_outputs.Disconnect():
                    waiting = False
                case client_outputs.ProducerFailed():
                    opening = False
                case client_outputs.Transmit(number) if number == link:
                    sent += _credentials_in(client.data_to_send(link))
        assert sent <= provided, "credentials that were not provided"
        match draws.below(8):
            case 0 | 1 if waiting:
                waiting = False
                provided += 1
                client.provide_credentials(now, link, Secret(draws.blob(draws.below(40))))
            case 2 if waiting:
                waiting = False
                client.refuse_credentials(now, link, CredentialsFailed("no"))
            case 3:
                now += draws.below(3) * SECOND
                client.handle_deadline(now)
            case 4:
                answer = proto.CommandConnected(server_version="s", protocol_version=21)
                client.receive_data(now, link, _framed(Command.CONNECTED, answer))
            case _:
                client.receive_data(now, link, _challenge(draws))
    client.disconnected(now, link, "the end")


def _outputs(machine: Client | Broker) -> list[Any]:
    """Take the outputs of one input."""
    found: list[Any] = []
    while (output := machine.next_output()) is not None:
        found.append(output)
    assert len(found) <= MAX_OUTPUTS
    return found


def _credentials_in(chunks: Iterable[bytes]) -> int:
    """Count the commands that carry credentials."""
    return sum(kind in (Command.CONNECT, Command.AUTH_RESPONSE) for kind, _ in _commands(b"".join(chunks)))


def _commands(data: bytes) -> list[tuple[int, Any]]:
    decoder, position = FrameDecoder(), 0
    found: list[tuple[int, Any]] = []
    while (decoded := decoder.decode(data, position, LIMIT)) is not None:
        kind, command, position = decoded
        found.append((kind, command))
    return found


def _framed(number: int, command: Any) -> bytes:
    return frame_command(number, command.SerializeToString())


def _challenge(draws: Draws) -> bytes:
    asked = proto.AuthData(auth_method_name=draws.choice(METHODS), auth_data=_blob(draws))
    command = proto.CommandAuthChallenge(server_version="s", protocol_version=21, challenge=asked)
    return _framed(Command.AUTH_CHALLENGE, command)


def _blob(draws: Draws) -> bytes:
    """Known data, any bytes, or data beyond the limit."""
    match draws.below(8):
        case 0 | 1:
            return draws.choice((b"PulsarAuthRefresh", b"one", b"again", b""))
        case 2:
            return bytes(64 * 1024 + draws.below(2))
        case _:
            return draws.blob(draws.below(60))


class Steps:
    """Asks once more after `again`, and gives a role for a secret that no input has."""

    method = "steps"

    def authenticate(self, data: bytes, certificate: str | None) -> Identity | Challenge:
        if data == b"again":
            return Challenge(data, lambda answer: self.authenticate(answer, certificate))
        if data == b"bug":
            raise ZeroDivisionError
        raise AuthenticationError("not the secret")


def _answer_broker(draws: Draws) -> None:
    """The broker answers a liar by challenges and errors only, and never by CONNECTED."""
    providers = (Steps(), CertificateProvider(), TOKENS[0])
    authentication = BrokerAuthentication(
        providers, proxy_roles=frozenset({"proxy"}), authenticate_original=bool(draws.below(2))
    )
    config = BrokerConfig(authentication=authentication)
    broker = Broker(0, config, MemoryStore().load(), seed=1, wall_time=WALL)
    now, link, fresh = 0, 0, True
    for _ in range(STEPS):
        if fresh:
            link += 1
            broker.accepted(now, link, "liar")
        match draws.below(6) if not fresh else 0:
            case 0:
                command = _connect(draws)
            case 1 | 2 | 3:
                command = _response(draws)
            case 4:
                command = frame(draws.blob(draws.below(30)))
            case _:
                now += draws.below(20) * SECOND
                broker.handle_deadline(now)
                command = b""
        broker.receive_data(now, link, command)
        fresh = False
        for output in _outputs(broker):
            if isinstance(output, broker_outputs.Transmit):
                _check_answers(_commands(b"".join(broker.data_to_send(link))))
            elif isinstance(output, broker_outputs.Disconnect):
                broker.disconnected(now, link, "ended")
                fresh = True


def _check_answers(answers: list[tuple[int, Any]]) -> None:
    for kind, command in answers:
        assert kind in (Command.AUTH_CHALLENGE, Command.ERROR, Command.PING, Command.PONG), "connected"
        if kind == Command.ERROR:
            assert command.message in ("Failed to authenticate", "Invalid roles."), command.message


def _connect(draws: Draws) -> bytes:
    connect = proto.CommandConnect(
        client_version="liar",
        protocol_version=draws.choice((21, 21, 13, 0, -1)),
        auth_method_name=draws.choice((*METHODS, "tls")),
        auth_data=_blob(draws),
    )
    if draws.below(4) == 0:
        connect.original_principal = draws.choice(("ada", " ", "proxy"))
        connect.original_auth_method = draws.choice(METHODS)
        connect.original_auth_data = _blob(draws).decode("latin-1")
        connect.proxy_version = "p"
    connect.feature_flags.supports_auth_refresh = bool(draws.below(2))
    return _framed(Command.CONNECT, connect)


def _response(draws: Draws) -> bytes:
    command = proto.CommandAuthResponse(client_version="liar", protocol_version=21)
    if draws.below(4):
        command.response.auth_method_name = draws.choice(METHODS)
    if draws.below(4):
        command.response.auth_data = _blob(draws)
    return _framed(Command.AUTH_RESPONSE, command)


# --- tokens -------------------------------------------------------------------------------------------

SECRET_KEY = b"a secret key of 32 bytes or more, which signs the tokens of this module"

PUBLIC_KEY = b"""-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt
6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
-----END PUBLIC KEY-----
"""
"""Its private key was not kept, so no token of its algorithms may be accepted."""

TOKENS = (TokenProvider(secret_key=SECRET_KEY), TokenProvider(public_key=PUBLIC_KEY))

DIGESTS = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}


def tokens(data: bytes) -> None:
    """A token, or claims that are signed here: only declared refusals, and never a role without a signature.

    The first byte: 0 and 1 choose the key that has to verify the rest; any other has the rest signed.
    """
    kind, rest = data[:1], data[1:]
    if kind not in (b"\0", b"\1"):
        rest = sign(rest)
    try:
        found = TOKENS[kind == b"\1"].authenticate(rest, None)
    except AuthenticationError as error:
        text = str(error)
    else:
        _check_accepted(kind, rest, found)
        return
    assert len(text) < 200


def _check_accepted(kind: bytes, token: bytes, found: Identity) -> None:
    assert kind != b"\1", "the private key was not kept"
    assert _is_signed(token)
    claims = json.loads(_decoded(token.split(b".")[1]))
    assert found.role in (claims["sub"], *claims["sub"][:1])
    for moment in (found.begins_at_ms, found.expires_at_ms):
        assert moment is None or isinstance(moment, int)
    assert claims.get("exp") is None or found.expires_at_ms is not None


def sign(claims: bytes) -> bytes:
    """Return a token with these bytes in place of claims, signed with the secret key."""
    signed = b".".join(urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"HS256"}', claims))
    signature = hmac.digest(SECRET_KEY, signed, "sha256")
    return signed + b"." + urlsafe_b64encode(signature).rstrip(b"=")


def _is_signed(token: bytes) -> bool:
    signed, _, signature = token.rpartition(b".")
    digest = DIGESTS[json.loads(_decoded(signed.split(b".")[0]))["alg"]]
    return hmac.compare_digest(hmac.digest(SECRET_KEY, signed, digest), _decoded(signature))


def _decoded(part: bytes) -> bytes:
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))


# --- certificates -------------------------------------------------------------------------------------

ATTRIBUTES = ("commonName", "commonName", "organizationName", "emailAddress", "CN", "")


def certificate_names(data: bytes) -> None:
    """Subject and other names of a certificate: the role is the last common name, to the letter, or none.

    A name in another attribute, or in the middle of a text, gives no role.
    """
    draws = Draws.of_bytes(data)
    subject = []
    names: list[str] = []
    for _ in range(draws.below(5)):
        group = []
        for _ in range(1 + draws.below(2)):
            attribute = draws.choice(ATTRIBUTES)
            value = draws.choice(("root", "", " ", "root\0evil", "x,CN=root", "*", "root ")) or draws.blob(
                draws.below(12)
            ).decode("latin-1")
            group.append((attribute, value))
            if attribute == "commonName":
                names.append(value)
        subject.append(tuple(group))
    certificate = {"subject": tuple(subject), "subjectAltName": (("DNS", "root"), ("URI", "root"))}
    role = common_name(certificate if subject else {})
    assert role == ((names[-1] or None) if names else None)
    settings = BrokerAuthentication((CertificateProvider(),), superusers=frozenset({"root"}))
    authenticator = Authenticator(settings, lambda: WALL)
    try:
        found = authenticator.role("tls", b"", role)
    except AuthenticationError:
        assert not role
        return
    assert found == role == names[-1]
    superuser = Authorization(settings, {}, {}).is_superuser((found,))
    assert superuser == (names[-1] == "root")
