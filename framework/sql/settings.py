"""Spark settings that decide what SQL means. Sluice's SQL is written for these values, and a spec cannot change them. A spec cannot
change either that a local Spark authenticates its connections."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SQL_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        # Otherwise Spark replaces `${…}` by environment variables and settings, secrets too, in any SQL text, also inside a literal.
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        # The last of equal keys counts, as in JSON. An exception would leave keys in Spark's builder, for the map of the next row.
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.jsonGenerator.ignoreNullFields": "true",
        # A message with one invalid field is a bad row, not a row with a null.
        "spark.sql.json.enablePartialResults": "false",
        # Otherwise Spark drops a part of the plan that has no rows, and the observed counts of the batch with it.
        "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    }
)
EXTENSIONS = "sluice.Extensions"  # the Java class that adds the function of `framework/sql/attempt.py` to a session
FUNCTIONS = "_sluice_decoders"  # the catalog of Sluice's own SQL functions; no catalog of a spec can have this name
STAGED_FILES = "_sluice_files"  # the catalog of chosen files of tables; no catalog of a spec can have this name
# For a local Spark: other users of the machine can reach its ports, so each connection needs a secret.
LOCAL_SETTINGS: Mapping[str, str] = MappingProxyType({"spark.authenticate": "true"})
LEGACY_PREFIXES = ("spark.sql.legacy.", "spark.sql.parser.escapedStringLiterals")
"""Prefixes of settings that restore how older versions of Spark read SQL. Spark warns even if one is only named."""
