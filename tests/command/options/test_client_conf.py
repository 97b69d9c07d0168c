"""`client.conf` of Pulsar's own tools: URL, TLS and credentials, and clear errors for the rest."""

import base64
import json
from pathlib import Path

import pytest
import trio

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_trio import Basic, MutualTls, OAuth2, Token
from pulsar_trio_command.options.client_conf import FileSettings, read_client_conf
from tests.canary import CANARY

PACKAGE = "org.apache.pulsar.client.impl.auth"


def read(tmp_path: Path, *lines: str) -> FileSettings:
    file = tmp_path / "client.conf"
    file.write_text("\n".join(lines))
    return read_client_conf(file)


def credentials(found: FileSettings) -> Secret:
    assert found.authentication is not None
    return trio.run(found.authentication.credentials, "broker")


def test_the_file_as_pulsar_ships_it(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "webServiceUrl=http://localhost:8080/",
        "brokerServiceUrl=pulsar://localhost:6650/",
        "authPlugin=",
        "authParams=",
        "tlsAllowInsecureConnection=false",
        "tlsEnableHostnameVerification=false",
        "tlsTrustCertsFilePath=",
        "useKeyStoreTls=false",
        "tlsTrustStoreType=JKS",
        "tlsTrustStorePath=",
        "webserviceTlsProvider=",
    )
    assert found == FileSettings(url="pulsar://localhost:6650/")


def test_tls(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "brokerServiceUrl=pulsar+ssl://broker:6651",
        "tlsTrustCertsFilePath=/trust.pem",
        "tlsCertificateFilePath=/own.pem",
        "tlsKeyFilePath=/own.key",
        "proxyServiceUrl=pulsar+ssl://proxy:4443",
        "proxyProtocol=SNI",
    )
    assert found == FileSettings(
        url="pulsar+ssl://broker:6651",
        tls_trust="/trust.pem",
        tls_certificate="/own.pem",
        tls_key="/own.key",
        sni_proxy="pulsar+ssl://proxy:4443",
    )


def test_the_url_of_the_web_service_where_there_is_no_other(tmp_path: Path) -> None:
    assert read(tmp_path, "webServiceUrl=https://broker:8443").url == "https://broker:8443"


def test_use_tls_makes_the_url_one_with_tls(tmp_path: Path) -> None:
    for url in ("pulsar://broker:6651", "PULSAR://broker:6651", "pulsar+ssl://broker:6651"):
        found = read(tmp_path, f"brokerServiceUrl={url}", "useTls=true")
        assert found.url == "pulsar+ssl://broker:6651"


def test_less_verification_is_followed_and_said(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "brokerServiceUrl=pulsar+ssl://broker:6651",
        "tlsAllowInsecureConnection=true",
        "tlsEnableHostnameVerification=false",
    )
    assert (found.tls_insecure_accept_any_certificate, found.tls_insecure_accept_any_host) == (True, True)
    assert [":2: tlsAllow" in found.warnings[0], ":3: tlsEnable" in found.warnings[1]] == [True, True]


def test_other_settings_are_named_once(tmp_path: Path) -> None:
    (warning,) = read(tmp_path, "memoryLimit=64M", "somethingElse=1").warnings
    assert warning.endswith("memoryLimit, somethingElse")


@pytest.mark.parametrize(
    "params",
    [f"token:{CANARY}", CANARY, json.dumps({"token": CANARY}), "file:///{folder}/token"],
)
def test_a_token(tmp_path: Path, params: str) -> None:
    (tmp_path / "token").write_text(CANARY + "\n")
    params = params.replace("/{folder}", str(tmp_path))
    found = read(tmp_path, f"authPlugin={PACKAGE}.AuthenticationToken", f"authParams={params}")
    assert isinstance(found.authentication, Token)
    assert credentials(found).reveal() == CANARY.encode()
    assert CANARY not in repr(found)


@pytest.mark.parametrize("name", ["userId", "username"])
def test_a_user(tmp_path: Path, name: str) -> None:
    params = json.dumps({name: "me", "password": CANARY})
    found = read(tmp_path, f"authPlugin={PACKAGE}.AuthenticationBasic", f"authParams={params}")
    assert isinstance(found.authentication, Basic)
    assert credentials(found).reveal() == b"me:" + CANARY.encode()
    assert CANARY not in repr(found)


@pytest.mark.parametrize(
    "params",
    ["tlsCertFile:/own.pem,tlsKeyFile:/own.key", '{"tlsCertFile": "/own.pem", "tlsKeyFile": "/own.key"}'],
)
def test_a_certificate(tmp_path: Path, params: str) -> None:
    found = read(tmp_path, f"authPlugin={PACKAGE}.AuthenticationTls", f"authParams={params}")
    assert isinstance(found.authentication, MutualTls)
    assert (found.tls_certificate, found.tls_key) == ("/own.pem", "/own.key")


INSIDE = {"client_id": "me", "client_secret": CANARY, "issuer_url": "https://issuer"}
DATA = "data:application/json;base64," + base64.b64encode(json.dumps(INSIDE).encode()).decode()


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        (
            {"privateKey": "file:///a%20b.json", "issuerUrl": "https://issuer", "audience": "a"},
            "OAuth2('https://issuer', credentials='/a b.json')",
        ),
        (
            {"privateKey": "/key.json", "issuerUrl": "https://issuer"},
            "OAuth2('https://issuer', credentials='/key.json')",
        ),
        ({"privateKey": DATA}, "OAuth2('https://issuer', client_id='me')"),
        (
            {"client_id": "me", "client_secret": CANARY, "issuer_url": "https://issuer"},
            "OAuth2('https://issuer', client_id='me')",
        ),
    ],
)
def test_oauth2(tmp_path: Path, params: dict[str, str], shown: str) -> None:
    plugin = "org.apache.pulsar.client.impl.auth.oauth2.AuthenticationOAuth2"
    found = read(tmp_path, f"authPlugin={plugin}", f"authParams={json.dumps(params)}")
    assert isinstance(found.authentication, OAuth2)
    assert repr(found.authentication) == shown


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["useKeyStoreTls=true"], ":1: useKeyStoreTls: false, because"),
        (["useTls=yes"], ":1: useTls: true or false"),
        (["useTls=true"], ":1: useTls: true needs a brokerServiceUrl"),
        (
            ["webServiceUrl=http://broker:8080", "useTls=true"],
            ":2: useTls: true .* or a webServiceUrl of https",
        ),
        (
            ["authPlugin=AuthenticationBasic", f"authParams={'[' * 100_000}"],
            "AuthenticationBasic: a JSON object",
        ),
        (["proxyServiceUrl=pulsar+ssl://p:1"], ":1: proxyServiceUrl needs proxyProtocol=SNI"),
        (["authPlugin=a.b.AuthenticationAthenz"], ":1: authPlugin: 'AuthenticationAthenz' is none of"),
        (["authPlugin=AuthenticationToken"], "token:TOKEN or file"),
        (["authPlugin=AuthenticationToken", "authParams=file://host/f"], ":2: authParams of .*file:///PATH"),
        (["authPlugin=AuthenticationBasic", f"authParams=me:{CANARY}"], "AuthenticationBasic: a JSON object"),
        (["authPlugin=AuthenticationBasic", 'authParams={"userId": "a"}'], "password is required"),
        (["authPlugin=AuthenticationBasic", 'authParams={"userId": 7, "password": "a"}'], "userId: a text"),
        (
            ["authPlugin=AuthenticationOAuth2", 'authParams={"issuerUrl": "https://i"}'],
            "clientId is required",
        ),
        (["authPlugin=AuthenticationOAuth2", 'authParams={"privateKey": "data:,x"}'], "data:application"),
        (
            ["authPlugin=AuthenticationOAuth2", 'authParams={"privateKey": "data:;base64,%"}'],
            "data:application",
        ),
    ],
)
def test_an_error_names_the_line_and_no_secret(tmp_path: Path, lines: list[str], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words) as caught:
        read(tmp_path, *lines)
    assert CANARY not in str(caught.value)
