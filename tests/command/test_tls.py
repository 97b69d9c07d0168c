"""The commands over TLS: a certificate of the broker, a client that trusts it, and failures in one line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.canary import CANARY
from tests.patience import PATIENCE
from tests.security.certificates import Authority

COMMAND = [sys.executable, "-m", "pulsar_trio_command"]
pytestmark = pytest.mark.slow

PRODUCE = ("produce", "t", "--count", "3")


@contextmanager
def broker(*arguments: str) -> Iterator[dict[str, str]]:
    """The addresses of a broker that listens with TLS."""
    ports = ["--port", "0", "--tls-port", "0", "--https-port", "0", "--json"]
    process = subprocess.Popen(
        [*COMMAND, "broker", *ports, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, env=os.environ | environment, timeout=PATIENCE
    )


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_messages_go_through_tls_by_options_and_by_file(authority: Authority, tmp_path: Path) -> None:
    files = authority.issue("localhost", "127.0.0.1")
    with broker("--tls-certificate", str(files.certificate), "--tls-key", str(files.key)) as ready:
        assert ready["admin_url_tls"].startswith("https://127.0.0.1:")
        url = ready["tls_url"]
        done = run(*PRODUCE, "--url", url, "--tls-trust", str(authority.file))
        assert done.returncode == 0, done.stderr
        conf = tmp_path / "client.conf"
        conf.write_text(f"brokerServiceUrl={url}\ntlsTrustCertsFilePath={authority.file}\n")
        consume = ("consume", "t", "--subscription", "s", "--count", "3", "--client-conf", str(conf))
        done = run(*consume)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 3
        done = run(*PRODUCE, "--url", url)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "certificate" in line
    assert "tls.trust" in line


def test_a_client_certificate_is_required(authority: Authority) -> None:
    files, own = authority.issue("127.0.0.1"), authority.issue(common_name="worker")
    with broker(
        "--set",
        f"tlsCertificateFilePath={files.certificate}",
        "--set",
        f"tlsKeyFilePath={files.key}",
        "--tls-trust",
        str(authority.file),
        "--tls-require-client-certificate",
    ) as ready:
        to = (*PRODUCE, "--url", ready["tls_url"], "--tls-trust", str(authority.file))
        done = run(*to)
        assert (done.returncode, "does not accept the certificate" in done.stderr) == (1, True)
        done = run(*to, "--tls-certificate", str(own.certificate), "--tls-key", str(own.key))
        assert done.returncode == 0, done.stderr


def test_credentials_that_cannot_be_read_are_one_line(tmp_path: Path, authority: Authority) -> None:
    files = authority.issue("127.0.0.1")
    with broker("--tls-certificate", str(files.certificate), "--tls-key", str(files.key)) as ready:
        done = run(*PRODUCE, "--url", ready["url"], "--token-file", str(tmp_path / "token"))
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert str(tmp_path / "token") in line
        done = run(*PRODUCE, "--url", ready["url"], PULSAR_TOKEN=f"{CANARY} and more")
    assert done.returncode == 2
    assert "a token has spaces" in done.stderr
    assert CANARY not in done.stderr
