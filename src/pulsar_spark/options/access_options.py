"""The options of TLS and credentials together: what needs what, and what excludes what."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from pulsar_sansio import InvalidConfiguration, ServiceUrl

from ..errors import ConflictingOptions, InvalidOption, MissingOption
from ..security.access import Access
from ..security.oauth2 import OAuth2Options

Named = Callable[[str], str | None]
"""Gives the name of the option that was given for an attribute, None where none was."""

METHODS = {
    "none": (),
    "token": ("token", "token_file"),
    "basic": ("user", "password"),
    "tls": (),
    "oauth2": tuple(f"oauth2_{each.name}" for each in fields(OAuth2Options)),
}
"""The attributes that belong to each method."""


def take_access(values: dict[str, Any], named: Named) -> Access:
    """Take what belongs to `Access` out of the values of a query.

    Raises an `OptionError`, which quotes no value that may be secret.
    """
    oauth2 = {each.name: values.pop(f"oauth2_{each.name}") for each in fields(OAuth2Options)}
    found = {each.name: values.pop(each.name) for each in fields(Access) if each.name != "oauth2"}
    method = found["method"]
    for other, attributes in METHODS.items():
        for attribute in attributes:
            if other != method and named(attribute) is not None:
                raise ConflictingOptions(f"option {named(attribute)} needs auth.method={other}")
    if method == "token" and (found["token"] is None) == (found["token_file"] is None):
        raise MissingOption("auth.method=token needs one of the options auth.token and auth.tokenFile")
    if method == "basic" and (found["user"] is None or found["password"] is None):
        raise MissingOption("auth.method=basic needs the options auth.user and auth.password")
    if method == "tls" and found["certificate"] is None:
        raise MissingOption("auth.method=tls needs the option tls.certificate")
    if method == "oauth2":
        found["oauth2"] = _checked(OAuth2Options(**oauth2))
    found["method"] = None if method == "none" else method
    _check_tls(values["service_url"], found, named)
    access = Access(**found)
    try:
        access.tls_config()
    except InvalidConfiguration as error:
        raise InvalidOption(f"options of TLS: {error}") from None
    return access


def _checked(options: OAuth2Options) -> OAuth2Options:
    if (options.credentials is None) == (options.client_id is None or options.client_secret is None):
        raise MissingOption(
            "auth.method=oauth2 needs the option auth.oauth2Credentials, or both auth.oauth2ClientId and "
            "auth.oauth2ClientSecret"
        )
    if options.credentials is None and options.issuer is None:
        raise MissingOption("auth.oauth2ClientId needs the option auth.oauth2Issuer")
    try:
        options.check()
    except InvalidConfiguration as error:
        raise InvalidOption(f"options of OAuth 2.0: {error}") from None
    return options


def _check_tls(service_url: str, found: dict[str, Any], named: Named) -> None:
    if ServiceUrl.parse(service_url).tls:
        return
    for attribute in ("trust", "certificate", "key", "key_password", "ciphers"):
        if named(attribute) is not None:
            raise ConflictingOptions(
                f"option {named(attribute)} needs a service.url of pulsar+ssl:// or https://"
            )
    for attribute in ("insecure_accept_any_certificate", "insecure_accept_any_host"):
        if found[attribute]:
            raise ConflictingOptions(
                f"option {named(attribute)} needs a service.url of pulsar+ssl:// or https://"
            )
