"""The file `client.conf` of Pulsar's own tools: URL, TLS and credentials.

Knows Pulsar's names and Java's class names. A setting that this client cannot follow is an error where a
connection without it would be less secure or would fail; any other one is a warning. No text quotes a value
that may be a secret.
"""

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pulsar_sansio import InvalidConfiguration, Secret
from pulsar_security import TlsConfig
from pulsar_trio.security.authentication import Authentication, Basic, MutualTls, Token
from pulsar_trio.security.oauth2 import OAuth2

from ..properties import Property, read_properties

IGNORED_KEY_STORE = (
    "tlsKeyStorePassword",
    "tlsKeyStorePath",
    "tlsKeyStoreType",
    "tlsTrustStorePassword",
    "tlsTrustStorePath",
    "tlsTrustStoreType",
)
"""Settings that Pulsar's tools read with `useKeyStoreTls=true` only."""


@dataclass(slots=True)
class FileSettings:
    """The settings of a file. Their names are those of the command's options; None is not given."""

    url: str | None = None
    tls_trust: str | None = None
    tls_certificate: str | None = None
    tls_key: str | None = None
    tls_insecure_accept_any_certificate: bool = False
    tls_insecure_accept_any_host: bool = False
    sni_proxy: str | None = None
    authentication: Authentication | None = None
    warnings: list[str] = field(default_factory=list)


def read_client_conf(file: Path) -> FileSettings:
    """Raises `InvalidConfiguration`, which names the file and the setting."""
    given = {each.name: each for each in read_properties(file) if each.value}
    found = FileSettings()
    _read_url(given, found)
    _read_tls(given, found)
    _read_proxy(given, found)
    _read_authentication(given, found)
    if given:
        found.warnings.append(f"{file}: ignored, because it means nothing here: {', '.join(sorted(given))}")
    return found


def _read_url(given: dict[str, Property], found: FileSettings) -> None:
    broker, web = given.pop("brokerServiceUrl", None), given.pop("webServiceUrl", None)
    url = broker or web  # Pulsar's tools take them in this order
    use_tls = given.pop("useTls", None)
    scheme, separator, hosts = ("", "", "") if url is None else url.value.partition("://")
    scheme = scheme.lower()
    if use_tls is not None and _flag(use_tls):
        if url is None or scheme == "http":
            raise InvalidConfiguration(
                f"{use_tls.where}: useTls: true needs a brokerServiceUrl, or a webServiceUrl of https://"
            )
        scheme = "pulsar+ssl" if scheme == "pulsar" else scheme
    if url is not None:
        found.url = f"{scheme}{separator}{hosts}"


def _read_tls(given: dict[str, Property], found: FileSettings) -> None:
    key_store = given.pop("useKeyStoreTls", None)
    if _flag(key_store):
        assert key_store is not None
        raise InvalidConfiguration(
            f"{key_store.where}: useKeyStoreTls: false, because this client reads PEM files, no key stores"
        )
    for name in IGNORED_KEY_STORE:
        given.pop(name, None)
    for name, setting in (
        ("tlsTrustCertsFilePath", "tls_trust"),
        ("tlsCertificateFilePath", "tls_certificate"),
        ("tlsKeyFilePath", "tls_key"),
    ):
        each = given.pop(name, None)
        setattr(found, setting, None if each is None else each.value)
    insecure = given.pop("tlsAllowInsecureConnection", None)
    verified = given.pop("tlsEnableHostnameVerification", None)
    if found.url is None or found.url.startswith(("pulsar://", "http://")):
        return
    if insecure is not None and _flag(insecure):
        found.tls_insecure_accept_any_certificate = True
        found.warnings.append(f"{insecure.where}: {insecure.name}=true: every certificate is accepted")
    if verified is not None and not _flag(verified):
        found.tls_insecure_accept_any_host = True
        found.warnings.append(f"{verified.where}: {verified.name}=false: a certificate may be for any host")


def _read_proxy(given: dict[str, Property], found: FileSettings) -> None:
    url, protocol = given.pop("proxyServiceUrl", None), given.pop("proxyProtocol", None)
    if url is None:
        return
    if protocol is None or protocol.value.upper() != "SNI":
        where = (protocol or url).where
        raise InvalidConfiguration(f"{where}: proxyServiceUrl needs proxyProtocol=SNI")
    found.sni_proxy = url.value


def _flag(given: Property | None) -> bool:
    """Java takes any case."""
    if given is None:
        return False
    value = {"true": True, "false": False}.get(given.value.lower())
    if value is None:
        raise InvalidConfiguration(f"{given.where}: {given.name}: true or false")
    return value


# --- credentials ------------------------------------------------------------------------------------


def _read_authentication(given: dict[str, Property], found: FileSettings) -> None:
    plugin, params = given.pop("authPlugin", None), given.pop("authParams", None)
    if plugin is None:
        return
    name = plugin.value.rpartition(".")[2]
    read = _PLUGINS.get(name)
    if read is None:
        known = ", ".join(_PLUGINS)
        raise InvalidConfiguration(f"{plugin.where}: authPlugin: {name!r:.60} is none of {known}")
    where = plugin.where if params is None else params.where
    try:
        found.authentication = read("" if params is None else params.value, found)
    except _Unusable as error:
        raise InvalidConfiguration(f"{where}: authParams of {name}: {error}") from None


class _Unusable(Exception):
    """Parameters of credentials have a wrong form; the text does not quote them."""


def _token(params: str, found: FileSettings) -> Authentication:
    if params.startswith("file:"):
        return Token(Path(_file(params)))
    if params.startswith("{"):
        params = _text(_object(params), "token")
    if not params:
        raise _Unusable("token:TOKEN or file:///PATH")
    return Token(params.removeprefix("token:"))


def _basic(params: str, found: FileSettings) -> Authentication:
    values = _object(params)
    return Basic(_text(values, "userId", "username"), _text(values, "password"))


def _mutual_tls(params: str, found: FileSettings) -> Authentication:
    """The files of the parameters replace those of the `tls…FilePath` settings."""
    if params.startswith("{"):
        values = _object(params)
    else:  # the form of Pulsar 1: name:value,name:value
        values = dict(each.strip().split(":", 1) for each in params.split(",") if ":" in each)
    found.tls_certificate = _optional(values, "tlsCertFile") or found.tls_certificate
    found.tls_key = _optional(values, "tlsKeyFile") or found.tls_key
    return MutualTls()


def _oauth2(params: str, found: FileSettings) -> Authentication:
    values = _object(params)
    issuer_url = _optional(values, "issuerUrl", "issuer_url")
    options: dict[str, Any] = {
        "audience": _optional(values, "audience"),
        "scope": _optional(values, "scope"),
    }
    trust = _optional(values, "trustCertsFilePath")
    if trust is not None:
        options["tls"] = TlsConfig(trust=trust)
    key = _optional(values, "privateKey", "private_key")
    if key is None:
        options["client_id"] = _text(values, "clientId", "client_id")
        options["client_secret"] = Secret(_text(values, "clientSecret", "client_secret"))
    elif key.startswith("data:"):
        inside = _object(_data(key))
        options["client_id"] = _text(inside, "client_id")
        options["client_secret"] = Secret(_text(inside, "client_secret"))
        issuer_url = issuer_url or _optional(inside, "issuer_url")
    else:
        options["credentials"] = _file(key)
    return OAuth2(issuer_url, **options)


_PLUGINS: dict[str, Callable[[str, FileSettings], Authentication]] = {
    "AuthenticationToken": _token,
    "AuthenticationBasic": _basic,
    "AuthenticationTls": _mutual_tls,
    "AuthenticationOAuth2": _oauth2,
}


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _Unusable("a JSON object")
    return found


def _optional(values: dict[str, Any], *names: str) -> str | None:
    """Return the first of these names that has a value: Java's name, or that of the C++ client."""
    for name in names:
        if values.get(name) not in (None, ""):
            if not isinstance(values[name], str):
                raise _Unusable(f"{name}: a text")
            return str(values[name])
    return None


def _text(values: dict[str, Any], *names: str) -> str:
    found = _optional(values, *names)
    if found is None:
        raise _Unusable(f"{names[0]} is required")
    return found


def _file(url: str) -> str:
    """Return the path of a file's URL, or the path itself."""
    if not url.startswith("file:"):
        return url
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise _Unusable("file:///PATH")
    return unquote(parts.path)


def _data(url: str) -> str:
    """Return the text of a URL with its data in Base64."""
    head, comma, text = url.partition(",")
    if not comma or not head.endswith(";base64"):
        raise _Unusable("data:application/json;base64,…")
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise _Unusable("data:application/json;base64,…") from None
