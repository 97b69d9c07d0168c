"""The Go client's own tests, built once into the cache.

They expect a broker at Pulsar's own ports of localhost. They need Go and the modules of `go/go.mod`.
`Unavailable` names what is missing.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import trio

from tests.interop.programs import BUILD_TIMEOUT, HERE
from tests.real_pulsar.jars import Unavailable, cache_root

MODULE = "github.com/apache/pulsar-client-go"


class GoTests:
    """The tests of the package `pulsar`. Raises `Unavailable`."""

    def __init__(self) -> None:
        self.folder = cache_root() / "interop" / f"go-tests-{_version()}-as-they-are"
        self._program = self.folder / "program"
        if not self._program.is_file():
            self._build()

    @property
    def certificates(self) -> Path:
        """The folder with the certificates of the tests' client, and of the broker, which is `localhost`."""
        return self.folder / "source" / "integration-tests" / "certs"

    def names(self) -> set[str]:
        """Return the names of all tests."""
        command = [str(self._program), "-test.list", "^Test"]
        listed = subprocess.run(command, cwd=self._package, capture_output=True, text=True, check=True)
        return {name for name in listed.stdout.split() if name.startswith("Test")}

    async def run(self, names: set[str]) -> dict[str, str]:
        """Run tests; return PASS, FAIL or SKIP by name, and ENDED where the test ended the program."""
        outcomes: dict[str, str] = {}
        while left := names - outcomes.keys():
            chosen = f"^({'|'.join(sorted(left))})$"
            done = await trio.run_process(
                [str(self._program), "-test.v", "-test.timeout", "30m", "-test.run", chosen],
                cwd=self._package,
                capture_stdout=True,
                stderr=subprocess.DEVNULL,
                check=False,
            )
            said = done.stdout.decode(errors="replace")
            found = re.findall(r"^--- (\w+): (\w+) ", said, re.MULTILINE)
            outcomes |= {name: outcome for outcome, name in found}
            if done.returncode not in (0, 1):
                last = re.findall(r"^=== RUN +(\w+)", said, re.MULTILINE)[-1]
                outcomes[last] = "ENDED"
            else:
                assert names <= outcomes.keys(), names - outcomes.keys()
        return outcomes

    @property
    def tokens(self) -> Path:
        """The folder with the tokens of the tests, and the secret key."""
        return self.folder / "source" / "integration-tests" / "tokens"

    @property
    def passwords(self) -> Path:
        """The file with the passwords of the tests."""
        return self.folder / "source" / "integration-tests" / "conf" / ".htpasswd"

    @property
    def _package(self) -> Path:
        return self.folder / "source" / "pulsar"

    def _build(self) -> None:
        source = self.folder / "source"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(_downloaded(), source, copy_function=shutil.copyfile)
        for folder in (source, *(each for each in source.rglob("*") if each.is_dir())):
            folder.chmod(0o755)
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
