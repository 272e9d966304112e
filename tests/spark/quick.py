"""Settings of a Spark that reads tables of a few rows: code is interpreted before it would be compiled, in Spark and in the JVM."""

from __future__ import annotations

from collections.abc import Mapping

QUERIES: Mapping[str, str] = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""Of a session."""
JVM: Mapping[str, str] = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"}
"""When it starts: the optimizing compiler and collectors with threads take the cores from the tests.

Without that compiler the JVM reserves 48 MB for code; a Spark that runs for minutes fills them, and is interpreted or stopped from then on.
"""
