"""The jobs: one function each, and one command each in `pulsar_spark.command`.

A job takes a session and plain values, and gives a result with what it found; it prints nothing and knows no
terminal. A caller that shows its progress passes `show`, see `pulsar_spark.progress`.
"""
