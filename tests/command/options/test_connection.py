"""The options of a connection: the order of command line, file and environment; and secrets in no text."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from pulsar_sansio import InvalidConfiguration
from pulsar_security import TlsConfig
from pulsar_trio import Basic, MutualTls, OAuth2, Token
from pulsar_trio_command.options.connection import ConnectionArguments, add_client_arguments, connection
from tests.canary import CANARY


def parsed(*arguments: str, **environment: str) -> ConnectionArguments:
    parser = argparse.ArgumentParser()
    add_client_arguments(parser)
    return connection(parser.parse_args(arguments), environment)


def credentials(found: ConnectionArguments) -> bytes:
    method = found.options["authentication"]
    assert method is not None
    return trio.run(method.credentials, "broker").reveal()


@pytest.fixture
def conf(tmp_path: Path) -> str:
    file = tmp_path / "client.conf"
    file.write_text(
        "brokerServiceUrl=pulsar+ssl://file:6651\n"
        "authPlugin=org.apache.pulsar.client.impl.auth.AuthenticationToken\n"
        "authParams=token:of-the-file\n"
        "tlsTrustCertsFilePath=/file.pem\n"
        "tlsCertificateFilePath=/file-own.pem\n"
        "tlsKeyFilePath=/file.key\n"
    )
    return str(file)


def test_the_url(conf: str) -> None:
    assert parsed() == ConnectionArguments("pulsar://localhost:6650", {}, ())
    assert parsed(PULSAR_SERVICE_URL="pulsar://b:1").url == "pulsar://b:1"
    assert parsed("--client-conf", conf, PULSAR_SERVICE_URL="pulsar://b:1").url == "pulsar+ssl://file:6651"
    assert parsed("--client-conf", conf, "--url", "pulsar://c:1").url == "pulsar://c:1"


def test_the_token_of_the_file_goes_before_that_of_the_environment(conf: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("of-the-option\n")
    assert credentials(parsed(PULSAR_TOKEN="of-the-environment\n")) == b"of-the-environment"
    assert credentials(parsed("--client-conf", conf, PULSAR_TOKEN="x")) == b"of-the-file"
    assert credentials(parsed("--client-conf", conf, "--token-file", str(token))) == b"of-the-option"


def test_the_files_of_tls(conf: str) -> None:
    of_file = TlsConfig(trust="/file.pem", certificate="/file-own.pem", key="/file.key")
    assert parsed("--client-conf", conf).options["tls"] == of_file
    replaced = parsed("--client-conf", conf, "--tls-certificate", "/both.pem").options["tls"]
    assert replaced == TlsConfig(trust="/file.pem", certificate="/both.pem"), "the key is not of the file"
    everything = parsed(
        "--tls-trust",
        "/t",
        "--tls-certificate",
        "/c",
        "--tls-key",
        "/k",
        "--tls-insecure-accept-any-certificate",
        "--tls-insecure-accept-any-host",
        PULSAR_TLS_KEY_PASSWORD=CANARY,
    ).options["tls"]
    assert CANARY not in repr(everything)
    assert everything == TlsConfig(
        trust="/t",
        certificate="/c",
        key="/k",
        key_password=everything.key_password,
        insecure_accept_any_certificate=True,
        insecure_accept_any_host=True,
    )


def test_a_certificate_is_the_identity_where_there_are_no_other_credentials() -> None:
    assert isinstance(parsed("--tls-certificate", "/c").options["authentication"], MutualTls)
    assert isinstance(parsed("--tls-certificate", "/c", PULSAR_TOKEN="x").options["authentication"], Token)


def test_a_user_with_a_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("of-the-file\n")
    found = parsed("--basic-user", "me", PULSAR_PASSWORD="of-the-environment")
    assert isinstance(found.options["authentication"], Basic)
    assert credentials(found) == b"me:of-the-environment"
    found = parsed("--basic-user", "me", "--basic-password-file", str(file), PULSAR_PASSWORD="x")
    assert credentials(found) == b"me:of-the-file"


def test_oauth2() -> None:
    found = parsed("--oauth2-credentials", "key.json", "--oauth2-issuer", "https://issuer")
    assert isinstance(found.options["authentication"], OAuth2)


def test_the_way_to_brokers() -> None:
    found = parsed(
        "--broker-host",
        "a",
        "--broker-host",
        ".b",
        "--listener-name",
        "outside",
        "--sni-proxy",
        "pulsar+ssl://p",
    )
    assert found.options == {
        "broker_hosts": ("a", ".b"),
        "listener_name": "outside",
        "sni_proxy": "pulsar+ssl://p",
    }


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--basic-user", "me"], "PULSAR_PASSWORD or --basic-password-file"),
        (["--basic-user", "me", "--basic-password-file", "/no/file"], "/no/file: No such file"),
        (["--basic-user", "me", "--token-file", "f"], "--token-file and --basic-user exclude"),
        (["--basic-user", "me", "--basic-password-file", "/dev/zero"], "/dev/zero: more than 4096 bytes"),
        (["--basic-password-file", "f"], "--basic-password-file needs --basic-user"),
        (["--oauth2-scope", "f"], "--oauth2-scope needs --oauth2-credentials"),
        (["--client-conf", "/no/file"], "/no/file cannot be read"),
        (["--tls-key", "k"], "key needs certificate"),
    ],
)
def test_options_that_do_not_go_together(arguments: Sequence[str], words: str) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        parsed(*arguments)
