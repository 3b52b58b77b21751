"""All commands by what they are for, each in a line: the help of `sluice` and the README's table say this."""

from __future__ import annotations

SECTIONS: dict[str, dict[str, str]] = {
    "write": {
        "init": "makes a folder with a first spec that runs, or a spec for a topic",
        "check": "finds all problems of the specs, each with its place and a hint",
        "plan": "shows what will run, what it changes, and what waits",
        "test": "runs the tests that stand in the specs, without Kafka",
        "preview": "shows what becomes of the next messages, step by step",
        "schema": "prints the JSON Schema of specs, for editors",
        "docs": "writes the pages of the language, with steps of your own",
    },
    "run": {
        "run": "brings all that waits into the tables; `--every 1m` stays",
        "pause": "pauses pipelines, for Dagster, too",
        "resume": "lets paused pipelines go on",
        "accept": "goes on from what a run refused, after showing what that means",
        "rebuild": "makes a table anew beside the old one, and publishes it by one commit",
        "ui": "opens Dagster with these specs, on this machine only",
    },
    "see": {
        "status": "shows how far each table is, how old its data is, what is wrong",
        "query": "answers one SQL select over the tables, with DuckDB",
        "bad-rows": "shows a table's bad rows by reason, with samples",
        "history": "shows a table's commits with their offsets",
        "peek": "shows a topic's messages",
        "topics": "shows the topics, or creates one",
    },
    "try and tidy": {
        "generate": "sends messages to a topic, made as its `generate:` says",
        "send": "sends one message",
        "services": "starts, stops and shows the Kafka and the schema registry of this machine",
        "drop": "drops a pipeline's table, so that it begins again",
        "clean": "takes away all that Sluice made here",
        "completion": "prints what makes a shell complete commands and names",
        "doctor": "checks Python, Java, packages, jars, ports, disk and memory",
        "setup": "gets the jars and makes Spark start quickly; `make setup` calls it",
        "demo": "what `make demo` calls",
    },
}

ELSEWHERE = {
    **dict.fromkeys(("validate", "lint", "compile", "parse"), "check"),
    **dict.fromkeys(("apply", "start", "sync", "ingest", "materialize"), "run"),
    **dict.fromkeys(("new", "create"), "init"),
    **dict.fromkeys(("sql", "select"), "query"),
    **dict.fromkeys(("list", "ls", "ps"), "status"),
    **dict.fromkeys(("delete", "destroy", "rm"), "drop"),
    **dict.fromkeys(("consume", "tail", "cat"), "peek"),
    **dict.fromkeys(("produce", "publish"), "send"),
    **dict.fromkeys(("backfill", "replay", "full-refresh"), "rebuild"),
    "unpause": "resume",
    "diff": "plan",
    "install": "setup",
    "up": "services up",
    "down": "services down",
    "web": "ui",
}
"""What other tools call them."""
