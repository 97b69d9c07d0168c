"""The options of TLS and credentials: what they make, what they refuse, and that no text has a secret."""

import pickle
import sys
from pathlib import Path

import pytest

from pulsar_sansio import CredentialsFailed, Secret
from pulsar_security import TlsConfig
from pulsar_spark.errors import (
    ConflictingOptions,
    InvalidOption,
    MissingOption,
    OptionError,
    OptionNotImplemented,
    UnknownOption,
)
from pulsar_spark.options.option_table import Use
from pulsar_spark.options.query_options import parse_read, parse_write
from pulsar_spark.security.access import Access
from pulsar_spark.security.carried_secret import CarriedSecret
from pulsar_spark.security.oauth2 import OAuth2Options

PLAIN = {"service.url": "pulsar://localhost", "topic": "t"}
TLS = {"service.url": "pulsar+ssl://localhost", "topic": "t"}
SECRET = "canary-secret"
OAUTH2 = {
    "auth.method": "oauth2",
    "auth.oauth2Issuer": "https://issuer",
    "auth.oauth2ClientId": "worker",
    "auth.oauth2ClientSecret": SECRET,
}
DOTTED = {name.replace(".", "__"): value for name, value in OAUTH2.items()}


def access(**given: str) -> Access:
    """The access of a read; `__` stands for a dot."""
    options = {name.replace("__", "."): value for name, value in given.items()}
    read = parse_read({**TLS, **options}, Use.BATCH_READ).access
    assert parse_write({**TLS, **options}, Use.STREAM_WRITE).access == read
    return read


def test_the_defaults() -> None:
    assert access() == Access()
    assert access().client_config() == {"authentication_method": None, "broker_hosts": None}
    assert access().tls_config() == TlsConfig()


def test_tls() -> None:
    found = access(
        tls__trust="/t",
        tls__certificate="/c",
        tls__key="/k",
        tls__keyPassword=SECRET,
        tls__ciphers="HIGH",
        tls__insecureAcceptAnyCertificate="true",
        tls__insecureAcceptAnyHost="true",
        auth__method="tls",
        broker__hosts="a, .b",
    )
    assert found.tls_config() == TlsConfig(
        trust="/t",
        certificate="/c",
        key="/k",
        key_password=Secret(SECRET),
        ciphers="HIGH",
        insecure_accept_any_certificate=True,
        insecure_accept_any_host=True,
    )
    assert found.client_config() == {"authentication_method": "tls", "broker_hosts": ("a", ".b")}
    assert found.credentials() == Secret(b"")


def test_a_token_and_a_user() -> None:
    assert access(auth__method="token", auth__token="abc").credentials() == Secret("abc")
    found = access(auth__method="basic", auth__user="me", auth__password=" a b ")
    assert found.credentials() == Secret("me: a b ")


def test_the_file_of_a_token_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "token"
    found = access(auth__method="token", auth__tokenFile=str(file))
    with pytest.raises(CredentialsFailed, match=r"auth.tokenFile .*token': No such file"):
        found.credentials()
    for text in ("one", "two"):
        file.write_text(text + "\n")
        assert found.credentials() == Secret(text)
    file.write_text(SECRET + " x")
    with pytest.raises(CredentialsFailed, match=r"auth.tokenFile: a token has spaces") as caught:
        found.credentials()
    assert SECRET not in str(caught.value)


def test_oauth2_by_a_file_or_by_options() -> None:
    by_file = access(auth__method="oauth2", auth__oauth2Credentials="/f", auth__oauth2Trust="/t")
    assert by_file == Access(method="oauth2", oauth2=OAuth2Options(credentials="/f", trust="/t"))
    by_id = access(auth__oauth2Audience="a", auth__oauth2Scope="s", **DOTTED)
    assert by_id.oauth2 == OAuth2Options(
        issuer="https://issuer",
        client_id="worker",
        client_secret=CarriedSecret(SECRET),
        audience="a",
        scope="s",
    )
    assert by_id.client_config()["authentication_method"] == "token"


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(InvalidOption, match=r"pip install 'pulsar-trio\[oauth2\]'"):
        parse_read({**TLS, **OAUTH2}, Use.BATCH_READ)


@pytest.mark.parametrize(
    "given",
    [
        {"auth.method": "token", "auth.token": SECRET},
        {"auth.method": "basic", "auth.user": "u", "auth.password": SECRET},
        OAUTH2,
    ],
    ids=["token", "password", "client secret"],
)
def test_a_query_carries_its_secret_and_no_text_has_it(given: dict[str, str]) -> None:
    options = parse_write({**TLS, **given}, Use.STREAM_WRITE)
    assert SECRET not in repr(options)
    assert pickle.loads(pickle.dumps(options)) == options


def test_executors_get_the_secrets_and_no_text_has_them() -> None:
    given = {"auth.method": "token", "auth.token": SECRET, "tls.certificate": "/c", "tls.keyPassword": SECRET}
    options = parse_read({**TLS, **given}, Use.STREAM_READ)
    assert SECRET not in repr(options)
    carried = pickle.loads(pickle.dumps(options))
    assert carried == options
    assert carried.access.credentials() == Secret(SECRET)
    assert hash(carried.access) == hash(options.access)
    assert CarriedSecret("a") != CarriedSecret("b")


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"auth.token": SECRET}, ConflictingOptions, "auth.token needs auth.method=token"),
        ({"auth.tokenFile": "f", "auth.method": "basic"}, ConflictingOptions, "needs auth.method=token"),
        ({"auth.user": "u", "auth.method": "token"}, ConflictingOptions, "needs auth.method=basic"),
        ({"auth.method": "token"}, MissingOption, "one of the options auth.token and auth.tokenFile"),
        (
            {"auth.method": "token", "auth.token": SECRET, "auth.tokenFile": "f"},
            MissingOption,
            "one of the options auth.token and auth.tokenFile",
        ),
        ({"auth.method": "basic", "auth.user": "u"}, MissingOption, "auth.user and auth.password"),
        (
            {"auth.method": "basic", "auth.user": f"u:{SECRET}", "auth.password": SECRET},
            InvalidOption,
            "^option auth.user: a name without a colon; the password is auth.password$",
        ),
        ({"auth.method": "tls"}, MissingOption, "needs the option tls.certificate"),
        ({"auth.method": "kerberos"}, InvalidOption, "none, token, basic, tls or oauth2"),
        ({"auth.method": "token", "auth.token": ""}, InvalidOption, "auth.token: the value is not allowed"),
        (
            {"auth.method": "token", "auth.token": f"{SECRET}\ud800"},
            InvalidOption,
            "auth.token: the value is not allowed",
        ),
        ({"tls.key": "k"}, InvalidOption, "key needs certificate"),
        ({"tls.keyPassword": SECRET}, InvalidOption, "key_password needs certificate"),
        ({"tls.trusted": SECRET}, UnknownOption, r"did you mean tls.trust\?"),
        ({"authParams": SECRET}, OptionNotImplemented, "credentials are the options auth"),
        ({**PLAIN, "tls.trust": "t"}, ConflictingOptions, r"tls.trust needs a service.url of pulsar\+ssl"),
        (
            {**PLAIN, "tls.insecureAcceptAnyHost": "true"},
            ConflictingOptions,
            r"tls.insecureAcceptAnyHost needs a service.url of pulsar\+ssl",
        ),
        ({"auth.oauth2Scope": "s"}, ConflictingOptions, "auth.oauth2Scope needs auth.method=oauth2"),
        ({"auth.method": "oauth2"}, MissingOption, "needs the option auth.oauth2Credentials"),
        (
            {"auth.method": "oauth2", "auth.oauth2ClientSecret": SECRET, "auth.oauth2Issuer": "https://i"},
            MissingOption,
            "both auth.oauth2ClientId and auth.oauth2ClientSecret",
        ),
        (OAUTH2 | {"auth.oauth2Issuer": ""}, InvalidOption, "auth.oauth2Issuer: '' is not allowed"),
        (
            {name: OAUTH2[name] for name in OAUTH2 if name != "auth.oauth2Issuer"},
            MissingOption,
            "auth.oauth2ClientId needs the option auth.oauth2Issuer",
        ),
        (
            {**OAUTH2, "auth.oauth2Issuer": f"https://user:{SECRET}@issuer"},
            InvalidOption,
            "options of OAuth 2.0: .*issuer_url: https://host",
        ),
        (
            {**OAUTH2, "auth.oauth2Credentials": "f", "auth.oauth2ClientSecret": SECRET},
            MissingOption,
            "needs the option auth.oauth2Credentials, or",
        ),
        (
            {"auth.method": "oauth2", "auth.oauth2Credentials": "f", "auth.oauth2ClientId": "c"},
            InvalidOption,
            "options of OAuth 2.0: .*give credentials, or client_id and client_secret",
        ),
        ({"service.url": "https://localhost/lookup"}, InvalidOption, r"service.url: .*nothing may follow"),
    ],
)
def test_options_that_do_not_go_together(given: dict[str, str], error: type[OptionError], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        parse_read({**TLS, **given}, Use.BATCH_READ)
    assert SECRET not in str(caught.value)
