"""The Go client's own tests, built once into the cache so that they run against any broker.

They have the addresses of a broker as constants; here they read them from the environment. They need Go
and the modules of `go/go.mod`. `Unavailable` names what is missing.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import trio

from tests.interop.programs import BUILD_TIMEOUT, HERE
from tests.real_pulsar.jars import Unavailable, cache_root

MODULE = "github.com/apache/pulsar-client-go"

ADDRESSES = ("serviceURL", "serviceURLTLS", "webServiceURL", "webServiceURLTLS")
"""The constants, which are the names of environment variables here."""


class GoTests:
    """The tests of the package `pulsar`. Raises `Unavailable`."""

    def __init__(self) -> None:
        self.folder = cache_root() / "interop" / f"go-tests-{_version()}"
        self._program = self.folder / "program"
        if not self._program.is_file():
            self._build()

    @property
    def certificates(self) -> Path:
        """The folder with the certificates of the tests' client, and of the broker, which is `localhost`."""
        return self.folder / "source" / "integration-tests" / "certs"

    def names(self, pattern: str) -> set[str]:
        """Return the names of the tests that match."""
        command = [str(self._program), "-test.list", pattern]
        listed = subprocess.run(command, cwd=self._package, capture_output=True, text=True, check=True)
        return set(listed.stdout.split())

    async def run(self, names: set[str], addresses: Mapping[str, str]) -> dict[str, str]:
        """Run tests; return PASS, FAIL or SKIP by name. One that ended the program has no outcome."""
        done = await trio.run_process(
            [str(self._program), "-test.v", "-test.run", f"^({'|'.join(sorted(names))})$"],
            cwd=self._package,
            env={**os.environ, **addresses},
            capture_stdout=True,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        found = re.findall(r"^--- (\w+): (\w+) ", done.stdout.decode(errors="replace"), re.MULTILINE)
        return {name: outcome for outcome, name in found}

    @property
    def _package(self) -> Path:
        return self.folder / "source" / "pulsar"

    def _build(self) -> None:
        source = self.folder / "source"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(_downloaded(), source, copy_function=shutil.copyfile)
        for folder in (source, *(each for each in source.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
        helpers = self._package / "helper_for_test.go"
        text = helpers.read_text()
        for name in ADDRESSES:
            text, count = re.subn(rf"^\s*{name}\s*= .*\n", "", text, flags=re.MULTILINE)
            assert count == 1, name
        helpers.write_text(text)
        variables = "".join(f'var {name} = os.Getenv("{name}")\n' for name in ADDRESSES)
        (self._package / "addresses_test.go").write_text(f'package pulsar\n\nimport "os"\n\n{variables}')
        try:
            _go("test", "-c", "-o", str(self._program), "./pulsar", folder=source)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Go did not build its client's tests in {BUILD_TIMEOUT:.0f} s") from None


def _version() -> str:
    return _go("list", "-m", "-f", "{{.Version}}", MODULE, folder=HERE / "go").strip()


def _downloaded() -> Path:
    """The folder with the client's sources, which has its tests."""
    answer = _go("mod", "download", "-json", f"{MODULE}@{_version()}", folder=HERE / "go")
    return Path(json.loads(answer)["Dir"])


def _go(*arguments: str, folder: Path) -> str:
    go = shutil.which("go")
    if go is None:
        raise Unavailable("the Go client needs Go, and there is no `go` on PATH")
    done = subprocess.run(
        [go, *arguments], cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT, check=False
    )
    if done.returncode != 0:
        raise Unavailable(f"go {arguments[0]}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout
