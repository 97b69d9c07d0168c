"""Inference: the definition that a query reads its values by, where the user gives no schema.

It is the latest one of the topic when the query is planned. Messages that were written with other versions
become values of it; topics of one query have to agree on it.
"""

from contextlib import closing

from pulsar_sansio import TopicName
from pulsar_sansio.schemas import SchemaInfo

from ..errors import NoSchema
from ..options.query_options import ReadOptions
from ..schemas.avro_types import NoSparkTypeError
from ..schemas.decoders import decoder_of
from ..schemas.spark_types import as_spark, ddl_of
from .batch_source import reading_link
from .topics import QueryTopics


def infer(options: ReadOptions) -> SchemaInfo:
    """Return the latest definition of the topics. Raises `NoSchema`, `TopicNotFound`, `LinkTimeout`."""
    link = reading_link(options)
    with closing(QueryTopics(options, link)) as topics:
        names, _ = topics.wait_for(topics.discover())
    found: dict[str, SchemaInfo] = {}
    first = ""
    for name in sorted(names):
        base = str(TopicName.parse(name).base)
        if base in found:
            continue
        info = link.definition(name, None, options.operation_timeout_s)
        if info is None:
            raise NoSchema(f"topic {base} has no schema: read it with valueType=bytes, or give a schema")
        found[base] = info
        first = first or base
        if (here := type_text(base, info)) != (there := type_text(first, found[first])):
            raise NoSchema(
                f"the schemas of the topics {first} and {base} disagree: {there} and {here}. Read the topics "
                "one by one, or give a schema that both fit"
            )
    if not found:
        raise NoSchema("no topic is there yet whose schema could be read: give a schema")
    return found[first]


def type_text(topic: str, info: SchemaInfo) -> str:
    """Return the type of values of a definition in Spark's DDL. Raises `NoSchema`."""
    try:
        return ddl_of(as_spark(decoder_of(info).type.arrow))
    except NoSparkTypeError as error:
        raise NoSchema(
            f"topic {topic}: {error}. Read it with valueType=bytes, or give a schema without that"
        ) from None
