"""The process that atheris runs in: `python -m fuzz.under_atheris TARGET [libFuzzer arguments]`.

The library is instrumented, and PyJWT, which reads tokens for it. So both are imported here, and not before.
"""

import os
import sys
from importlib import import_module
from typing import Any


def main() -> None:
    atheris: Any = import_module("atheris")
    target, arguments = sys.argv[1], [os.environ.get("FUZZ_PROGRAM", sys.argv[0]), *sys.argv[2:]]
    with atheris.instrument_imports(include=["pulsar_sansio", "pulsar_security", "pulsar_trio", "jwt"]):
        from fuzz.targets import TARGETS
    atheris.Setup(arguments, TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
