"""This module checks for a Java that Spark can run on, and prints one line where there is none.

Imports nothing but the standard library and nothing of this package: the Makefile runs this file before
anything is installed, `python src/pulsar_spark/java.py WHAT`.
"""

import os
import re
import shutil
import subprocess
import sys

LEAST = 17
"""Spark 4 runs on Java 17 and later."""


def missing_java() -> str | None:
    """Say what is wrong with this machine's Java, in words that follow "needs Java 17 or later: "; else None.

    As Spark does it: the one of JAVA_HOME if that is set, else `java` of PATH.
    """
    home = os.environ.get("JAVA_HOME")
    command = shutil.which(os.path.join(home, "bin", "java") if home else "java")
    if command is None:
        return f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java in PATH"
    said = subprocess.run([command, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if found is None:
        return f"{command} does not say its version"
    return f"{command} is version {found[1]}" if int(found[1]) < LEAST else None


def main() -> int:
    missing = missing_java()
    if missing is not None:
        print(f"{' '.join(sys.argv[1:]) or 'Spark'} needs Java {LEAST} or later: {missing}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
