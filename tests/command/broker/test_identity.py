"""Pulsar's names for authentication and authorization, as a file for the Java broker has them."""

import json
import pickle
from base64 import b64encode
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from pulsar_trio import AuthenticationError, BrokerAuthentication, InvalidConfiguration
from pulsar_trio_command.broker.identity import AUTHORIZATION, BASIC, TLS, TOKEN
from pulsar_trio_command.broker.settings import choose
from pulsar_trio_command.command import main
from pulsar_trio_command.properties import Property

IDENTITY_PARTS = {
    "authenticationEnabled",
    "authenticationProviders",
    "authorizationProvider",
    "basicAuthConf",
    "pulsar.auth.basic.conf",
    "tokenAudience",
    "tokenAudienceClaim",
    "tokenAuthClaim",
    "tokenPublicAlg",
    "tokenPublicKey",
    "tokenSecretKey",
}

KEY = bytes(range(64))
KEY_TEXT = b64encode(KEY).decode()
OTHER = b"another key of at least 32 bytes"

HTPASSWD = "ada:$apr1$12345678$XsuVNBMt1BhIqqVcUl6NI1\n"
"""The user ada with the password p."""

RSA = rsa.generate_private_key(65537, 2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def der(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found


def made(*texts: str) -> BrokerAuthentication | None:
    pairs = [text.partition("=") for text in texts]
    given = [Property(name, value, f"file:{line}") for line, (name, _, value) in enumerate(pairs, 1)]
    found: BrokerAuthentication | None = choose(given).options.get("authentication")
    return found


def enabled(*texts: str) -> BrokerAuthentication:
    found = made("authenticationEnabled=true", *texts)
    assert found is not None
    return found


def role_of(found: BrokerAuthentication, method: str, data: bytes) -> str | None:
    """Return the role that the provider of the method finds, or None where it refuses."""
    provider = found.provider(method)
    assert provider is not None
    try:
        outcome = provider.authenticate(data, None)
    except AuthenticationError:
        return None
    return getattr(outcome, "role", None)


def token(key: Any = KEY, algorithm: str = "HS256", **claims: Any) -> bytes:
    return jwt.encode(claims or {"sub": "ada"}, key, algorithm=algorithm).encode()


def error_of(*texts: str) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        made("authenticationEnabled=true", *texts)
    return str(caught.value)


# --- forms of keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["file URL", "short file URL", "path", "data", "plain data", "Base64"])
def test_a_key_in_each_form_of_pulsar(form: str, tmp_path: Path) -> None:
    key = b"k" * 32 if form == "plain data" else KEY
    file = tmp_path / "a key"
    file.write_bytes(key)
    value = {
        "file URL": file.as_uri(),
        "short file URL": f"file:{file}",
        "path": str(file),
        "data": f"data:;base64,{KEY_TEXT}",
        "plain data": f"data:,{key.decode()}",
        "Base64": KEY_TEXT,
    }[form]
    found = enabled(f"authenticationProviders={TOKEN}", f"tokenSecretKey={value}")
    assert role_of(found, "token", token(key)) == "ada"
    assert role_of(found, "token", token(OTHER)) is None
    if "file" in form or form == "path":
        file.write_bytes(OTHER)
        assert role_of(found, "token", token(OTHER)) == "ada"


@pytest.mark.parametrize("value", ["file://host/key", "data:nothing", "not Base64 but text", "abc"])
def test_a_key_in_another_form_is_refused_without_showing_it(value: str) -> None:
    found = error_of(f"authenticationProviders={TOKEN}", f"tokenSecretKey={value}")
    forms = "a path, file:///PATH, data:;base64,DATA, or Base64"
    assert found == f"file:3: tokenSecretKey: no such file, and not one of {forms}"


def test_the_path_of_a_missing_file_is_not_taken_for_a_key(tmp_path: Path) -> None:
    """Its text may be Base64."""
    (tmp_path / "keys").mkdir()
    path = str(tmp_path / "keys" / "secret")
    path += "x" * (-len(path.replace("-", "").replace("_", "")) % 4)
    for value in (path, f"file://{path}"):
        found = error_of(f"authenticationProviders={TOKEN}", f"tokenSecretKey={value}")
        assert "No such file" in found
        assert found.startswith("file:3: tokenSecretKey: ")


# --- tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (CURVE, "ES256")])
def test_a_public_key(key: Any, algorithm: str) -> None:
    text = b64encode(der(key)).decode()
    settings = [f"authenticationProviders={TOKEN}", f"tokenPublicKey={text}", f"tokenPublicAlg={algorithm}"]
    assert role_of(enabled(*settings), "token", token(key, algorithm)) == "ada"


def test_the_secret_key_goes_before_the_public_one() -> None:
    public = b64encode(der(RSA)).decode()
    found = enabled(
        f"authenticationProviders={TOKEN}", f"tokenPublicKey={public}", f"tokenSecretKey={KEY_TEXT}"
    )
    assert role_of(found, "token", token()) == "ada"
    assert role_of(found, "token", token(RSA, "RS256")) is None


def test_claims() -> None:
    found = enabled(
        f"authenticationProviders={TOKEN}",
        f"tokenSecretKey={KEY_TEXT}",
        "tokenAuthClaim=who",
        "tokenAudienceClaim=for",
        "tokenAudience=us",
    )
    assert role_of(found, "token", token(**{"who": "eve", "sub": "ada", "for": "us"})) == "eve"
    assert role_of(found, "token", token(**{"who": "eve", "for": "them"})) is None
    assert role_of(found, "token", token(**{"sub": "ada", "for": "us"})) is None


# --- passwords and certificates -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["basicAuthConf", "pulsar.auth.basic.conf"])
def test_passwords(name: str, tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_text(HTPASSWD)
    for value in (str(file), file.as_uri(), f"data:;base64,{b64encode(HTPASSWD.encode()).decode()}"):
        found = enabled(f"authenticationProviders={BASIC}", f"{name}={value}")
        assert role_of(found, "basic", b"ada:p") == "ada"
        assert role_of(found, "basic", b"ada:q") is None


def test_the_setting_goes_before_the_system_property(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for name, file in zip(("ada", "eve"), files, strict=True):
        file.write_text(HTPASSWD.replace("ada", name))
    names = [f"basicAuthConf={files[0]}", f"pulsar.auth.basic.conf={files[1]}"]
    for given in (names, names[::-1]):
        found = enabled(f"authenticationProviders={BASIC}", *given)
        assert (role_of(found, "basic", b"ada:p"), role_of(found, "basic", b"eve:p")) == ("ada", None)


def test_several_providers() -> None:
    found = enabled(
        f"authenticationProviders={TLS}, {TOKEN} ,,{TLS}", f"tokenSecretKey=data:;base64,{KEY_TEXT}"
    )
    assert [provider.method for provider in found.providers] == ["tls", "token"]


# --- roles --------------------------------------------------------------------------------------------


def test_roles_and_switches() -> None:
    found = enabled(
        f"authenticationProviders={TLS}",
        "superUserRoles=admin, root,",
        "proxyRoles=proxy",
        "anonymousUserRole=guest",
        "authenticateOriginalAuthData=true",
        "authenticationRefreshCheckSeconds=7",
        "authorizationEnabled=true",
        f"authorizationProvider={AUTHORIZATION}",
        "authorizationAllowWildcardsMatching=true",
    )
    assert found.superusers == {"admin", "root"}
    assert found.proxy_roles == {"proxy"}
    assert found.anonymous_role == "guest"
    assert found.refresh_interval == 7
    assert found.authenticate_original
    assert found.authorization
    assert found.wildcard_roles


def test_the_defaults_are_those_of_a_java_broker() -> None:
    found = enabled("anonymousUserRole=guest")
    assert found == BrokerAuthentication((), "guest", authorization=False)


@pytest.mark.parametrize("first", [(), ("authenticationEnabled=false",)])
def test_without_authentication_the_other_settings_do_not_count(first: tuple[str, ...]) -> None:
    """Pulsar's own files have them all."""
    assert made(*first, f"authenticationProviders={TOKEN}", "superUserRoles=admin") is None
    assert made(*first, "tokenSecretKey=/no/such/file.key", "authorizationEnabled=false") is None


def test_settings_without_a_meaning_here_are_ignored() -> None:
    given = [
        Property("brokerClientAuthenticationPlugin", "org.apache…AuthenticationToken", "file:1"),
        Property("brokerClientAuthenticationParameters", "token:secret", "file:2"),
    ]
    assert choose(given).ignored == [each.name for each in given]


# --- refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([], "file:1: authenticationEnabled: true needs authenticationProviders or anonymousUserRole"),
        (
            ["authenticationProviders=com.example.Mine"],
            "file:2: authenticationProviders: this broker has no provider 'com.example.Mine'; it has ",
        ),
        ([f"authenticationProviders={TOKEN}"], f"{TOKEN} needs tokenSecretKey or tokenPublicKey"),
        ([f"authenticationProviders={BASIC}"], f"{BASIC} needs basicAuthConf"),
        (
            [f"authenticationProviders={TOKEN}", "tokenSecretKey=c2hvcnQ="],
            "file:3: tokenSecretKey: secret_key: 5 bytes, at least 32 are needed",
        ),
        (
            [f"authenticationProviders={TOKEN}", f"tokenPublicKey={KEY_TEXT}"],
            "file:3: tokenPublicKey: public_key: no public key in PEM or DER",
        ),
        (
            [
                f"authenticationProviders={TOKEN}",
                f"tokenPublicKey={b64encode(der(RSA)).decode()}",
                "tokenPublicAlg=ES256",
            ],
            "file:4: tokenPublicAlg: the tokens of this public key have RS256, ",
        ),
        (["tokenPublicAlg=HS256"], "file:2: tokenPublicAlg: RS256 or "),
        (
            [f"authenticationProviders={TOKEN}", f"tokenSecretKey={KEY_TEXT}", "tokenAudience=us"],
            "file:4: tokenAudience: counts only together with tokenAudienceClaim",
        ),
        (
            [f"authenticationProviders={TOKEN}", f"tokenSecretKey={KEY_TEXT}", "tokenAudienceClaim=aud"],
            "file:4: tokenAudienceClaim: counts only together with tokenAudience",
        ),
        (
            [f"authenticationProviders={BASIC}", "basicAuthConf=data:,nothing"],
            "file:3: basicAuthConf: htpasswd: line 1 is not user:hash",
        ),
        (["authorizationProvider=com.example.Mine"], "file:2: authorizationProvider: org.apache."),
        (["authenticationRefreshCheckSeconds=0"], "file:2: authenticationRefreshCheckSeconds: a whole "),
        (["authenticateMetricsEndpoint=true"], "file:2: authenticateMetricsEndpoint: false, not 'true'"),
        (["tokenSettingPrefix=my"], "file:2: tokenSettingPrefix: empty, not 'my'"),
    ],
)
def test_a_fault_names_its_setting(settings: list[str], expected: str) -> None:
    assert expected in error_of(*settings)


def test_authorization_needs_authentication() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        made("authorizationEnabled=true")
    assert str(caught.value) == "file:1: authorizationEnabled: true needs authenticationEnabled=true"


@pytest.mark.parametrize("value", ["hidden-canary", "data:;base64,hidden-canary", "data:,hidden-canary"])
@pytest.mark.parametrize("name", ["tokenSecretKey", "basicAuthConf", "pulsar.auth.basic.conf"])
def test_no_error_shows_a_key(
    name: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "standalone.conf"
    providers = TOKEN if "token" in name else BASIC
    file.write_text(f"authenticationEnabled=true\nauthenticationProviders={providers}\n{name}={value}\n")
    for output in ([], ["--json"]):
        assert main(["broker", "--conf", str(file), *output]) == 2
        shown = capsys.readouterr()
        assert name in shown.out + shown.err
        assert "hidden-canary" not in shown.out + shown.err


def test_what_is_made_shows_and_pickles_no_key() -> None:
    found = enabled(f"authenticationProviders={TOKEN}", f"tokenSecretKey={KEY_TEXT}")
    assert KEY_TEXT not in json.dumps(repr(found))
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(found)
