"""Tests of pulsar_spark.

Modules with `pytestmark = pytest.mark.spark` need PySpark and Java 17 and are not even imported by `make
test`; `make test-spark` runs all of this folder. The others are pure and run always.
"""
