"""The options of every command that connects: URL, TLS and credentials, and their way into `open_client`.

An option of the command line goes before `--client-conf FILE`, and that before the environment. Tokens,
passwords and secrets come from files and from the environment, never from the command line: all users of a
machine can read that.
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import TlsConfig
from pulsar_trio.client.options import ClientOptions
from pulsar_trio.security.authentication import Authentication, Basic, MutualTls, Token
from pulsar_trio.security.oauth2 import OAuth2

from .client_conf import FileSettings, read_client_conf

DEFAULT_URL = "pulsar://localhost:6650"

MAX_PASSWORD = 4096
"""Bytes of a file with a password."""


@dataclass(frozen=True, slots=True)
class ConnectionArguments:
    """The URL and the keywords for `open_client`. `warnings`: lines about settings of the file."""

    url: str
    options: ClientOptions
    warnings: tuple[str, ...]


def add_client_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of a connection."""
    group = parser.add_argument_group("connection")
    group.add_argument(
        "--url", help=f"service URL; default is $PULSAR_SERVICE_URL, else {DEFAULT_URL}; TLS is pulsar+ssl://"
    )
    group.add_argument(
        "--client-conf",
        type=Path,
        metavar="FILE",
        help="URL, TLS and credentials from a client.conf of Pulsar's own tools; options go before it",
    )
    group.add_argument("--tls-trust", metavar="FILE", help="certificates of the authorities to trust, PEM")
    group.add_argument("--tls-certificate", metavar="FILE", help="the client's own certificate, PEM")
    group.add_argument(
        "--tls-key", metavar="FILE", help="its private key, PEM; $PULSAR_TLS_KEY_PASSWORD opens it"
    )
    group.add_argument(
        "--tls-insecure-accept-any-certificate",
        action="store_true",
        help="verify no certificate; any machine on the way can then take messages and credentials",
    )
    group.add_argument(
        "--tls-insecure-accept-any-host", action="store_true", help="accept certificates for other hosts"
    )
    group.add_argument(
        "--broker-host",
        action="append",
        metavar="HOST",
        help="a host that brokers may send this client to; .DOMAIN is every host in it; may be repeated",
    )
    group.add_argument("--listener-name", metavar="NAME", help="the advertised listener of the brokers")
    group.add_argument("--sni-proxy", metavar="URL", help="a proxy that routes TLS by server name")
    group.add_argument("--token-file", type=Path, metavar="FILE", help="a token; default is $PULSAR_TOKEN")
    group.add_argument("--basic-user", metavar="NAME", help="a user, with the password of $PULSAR_PASSWORD")
    group.add_argument("--basic-password-file", type=Path, metavar="FILE", help="the user's password")
    group.add_argument(
        "--oauth2-credentials", type=Path, metavar="FILE", help="client credentials for OAuth 2.0, JSON"
    )
    group.add_argument("--oauth2-issuer", metavar="URL", help="default is issuer_url of the credentials")
    group.add_argument("--oauth2-audience", metavar="TEXT")
    group.add_argument("--oauth2-scope", metavar="TEXT")


def connection(given: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> ConnectionArguments:
    """Put together what options, file and environment say.

    Raises `InvalidConfiguration` for a file that cannot be used and for options that exclude each other.
    """
    conf = FileSettings() if given.client_conf is None else read_client_conf(given.client_conf)
    url = given.url or conf.url or environment.get("PULSAR_SERVICE_URL") or DEFAULT_URL
    options: ClientOptions = {}
    tls = _tls(given, conf, environment)
    if tls != TlsConfig():
        options["tls"] = tls
    authentication = (
        _authentication(given, environment) or conf.authentication or _by_environment(environment)
    )
    if authentication is None and tls.certificate is not None:
        authentication = MutualTls()
    if authentication is not None:
        options["authentication"] = authentication
    if given.broker_host is not None:
        options["broker_hosts"] = tuple(given.broker_host)
    if given.listener_name is not None:
        options["listener_name"] = given.listener_name
    sni_proxy = given.sni_proxy or conf.sni_proxy
    if sni_proxy is not None:
        options["sni_proxy"] = sni_proxy
    return ConnectionArguments(url, options, tuple(conf.warnings))


def _tls(given: argparse.Namespace, conf: FileSettings, environment: Mapping[str, str]) -> TlsConfig:
    own = given.tls_certificate is not None  # its key belongs to it, in place of the file's key
    certificate = given.tls_certificate if own else conf.tls_certificate
    key = given.tls_key if own or given.tls_key is not None else conf.tls_key
    password = environment.get("PULSAR_TLS_KEY_PASSWORD")
    return TlsConfig(
        trust=given.tls_trust or conf.tls_trust,
        certificate=certificate,
        key=key,
        key_password=None if password is None or certificate is None else Secret(password),
        insecure_accept_any_certificate=(
            given.tls_insecure_accept_any_certificate or conf.tls_insecure_accept_any_certificate
        ),
        insecure_accept_any_host=given.tls_insecure_accept_any_host or conf.tls_insecure_accept_any_host,
    )


def _authentication(given: argparse.Namespace, environment: Mapping[str, str]) -> Authentication | None:
    """Return the credentials that the command line names."""
    methods = {
        "--token-file": given.token_file,
        "--basic-user": given.basic_user,
        "--oauth2-credentials": given.oauth2_credentials,
    }
    named = [option for option, value in methods.items() if value is not None]
    if len(named) > 1:
        raise InvalidConfiguration(f"{' and '.join(named)} exclude each other")
    for option, method in (
        ("basic_password_file", "--basic-user"),
        ("oauth2_issuer", "--oauth2-credentials"),
        ("oauth2_audience", "--oauth2-credentials"),
        ("oauth2_scope", "--oauth2-credentials"),
    ):
        if getattr(given, option) is not None and methods[method] is None:
            raise InvalidConfiguration(f"--{option.replace('_', '-')} needs {method}")
    if given.token_file is not None:
        return Token(given.token_file)
    if given.basic_user is not None:
        return Basic(given.basic_user, _password(given.basic_password_file, environment))
    if given.oauth2_credentials is not None:
        return OAuth2(
            given.oauth2_issuer,
            credentials=given.oauth2_credentials,
            audience=given.oauth2_audience,
            scope=given.oauth2_scope,
        )
    return None


def _by_environment(environment: Mapping[str, str]) -> Authentication | None:
    token = environment.get("PULSAR_TOKEN", "").strip()
    return Token(token) if token else None


def _password(file: Path | None, environment: Mapping[str, str]) -> Secret:
    if file is not None:
        try:
            with file.open("rb") as source:
                content = source.read(MAX_PASSWORD + 1)
        except OSError as error:
            raise InvalidConfiguration(f"--basic-password-file: {file}: {error.strerror}") from None
        if len(content) > MAX_PASSWORD:
            raise InvalidConfiguration(f"--basic-password-file: {file}: more than {MAX_PASSWORD} bytes")
        return Secret(content.rstrip(b"\r\n"))
    if "PULSAR_PASSWORD" not in environment:
        raise InvalidConfiguration("--basic-user needs $PULSAR_PASSWORD or --basic-password-file")
    return Secret(environment["PULSAR_PASSWORD"])
