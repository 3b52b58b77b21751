"""Settings of Spark that decide what SQL means. Sluice's SQL is written for these values, and a spec cannot change them; nor the one
by which a Spark of this machine asks who talks to it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

MEANING: Mapping[str, str] = MappingProxyType(
    {
        # Else Spark puts environment variables and settings, secrets too, in place of `${…}` in any SQL text, also inside a literal.
        "spark.sql.variable.substitute": "false",
        "spark.sql.parser.quotedRegexColumnNames": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.sql.jsonGenerator.ignoreNullFields": "true",
        # A message with one wrong field is a bad row, not a row with a null.
        "spark.sql.json.enablePartialResults": "false",
        # What is observed of a batch would be lost with a part of the plan that turns out to have no rows.
        "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    }
)
# Of a Spark on this machine: who may talk to its ports, which other users of the machine reach, has a secret.
LOCAL: Mapping[str, str] = MappingProxyType({"spark.authenticate": "true"})
OLDER = ("spark.sql.legacy.", "spark.sql.parser.escapedStringLiterals")
"""Settings that begin so bring back what older versions of Spark took SQL for. Spark warns where one is only named."""
