"""The topics, tables and exports of a plan, and which column is computed from which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace

from framework.plan import Column, Pipeline, Plan, Topic
from framework.plan.export import Export
from framework.plan.lineage import by_source

Place = tuple[str, str]  # the key of a part, and a column there


@dataclass(frozen=True)
class LineagePart:
    """A topic, a table, an export, or a follower of a table. `key` is its kind and its name."""

    key: str
    title: str
    _: KW_ONLY
    doc: str = ""
    where: str = ""
    pipeline: str = ""  # the name of the pipeline that writes it
    steps: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class LineageFlow:
    """The flow of a plan. `columns` pairs each column with one that is computed from it; `parts_of` pairs each part with one that is
    made of it, also where no column is known."""

    parts: tuple[LineagePart, ...]
    columns: tuple[tuple[Place, Place], ...]
    parts_of: tuple[tuple[str, str], ...]

    def origins(self, place: Place) -> list[Place]:
        return [origin for origin, target in self.columns if target == place]


def build_flow(plan: Plan) -> LineageFlow:
    parts: dict[str, LineagePart] = {}
    for topic in plan.topics:
        parts[_topic(topic.name)] = LineagePart(
            _topic(topic.name), topic.name, doc=topic.doc, where=str(topic.where), columns=topic.columns
        )
    for pipeline in plan.pipelines:
        table = pipeline.table
        steps = tuple(f"{step.name}: {'; '.join(step.says)}" for step in pipeline.steps)
        if pipeline.select:
            steps = ("\n".join(pipeline.select.says), *steps)
        parts[_table(table.identifier)] = LineagePart(
            _table(table.identifier), table.identifier, doc=pipeline.doc, where=str(pipeline.where), pipeline=pipeline.name,
            steps=steps, columns=table.readable,
        )  # fmt: skip
    columns, part_pairs = [], dict[tuple[str, str], None]()
    for pipeline in plan.pipelines:
        for origin, target in _columns(pipeline):
            columns.append((origin, target))
            part_pairs[origin[0], target[0]] = None
            parts[origin[0]] = _with_column(parts[origin[0]], origin[1], pipeline)
        part_pairs |= dict.fromkeys((source, _table(pipeline.table.identifier)) for source in _sources(pipeline))
        for follower in pipeline.also:
            key, table_part = f"{follower.type} {follower.name}", parts[_table(pipeline.table.identifier)]
            parts.setdefault(key, LineagePart(key, follower.name, where=str(follower.where), columns=table_part.columns))
            part_pairs[table_part.key, key] = None
            sent_names = {column.name for column in parts[key].columns}
            columns += [
                ((table_part.key, column.name), (key, column.name)) for column in table_part.columns if column.name in sent_names
            ]
    for document in plan.documents_of("export"):
        export: Export = document.value
        key = f"export {export.name}"
        parts[key] = LineagePart(key, export.name, doc=export.doc, where=str(export.where), steps=(export.query,))
        part_pairs[_table(export.pipeline.table.identifier), key] = None
    return LineageFlow(tuple(parts.values()), tuple(columns), tuple(part_pairs))


def _topic(name: str) -> str:
    return f"topic {name}"


def _table(identifier: str) -> str:
    return f"table {identifier}"


def _sources(pipeline: Pipeline) -> list[str]:
    tables = (*pipeline.read_tables, *pipeline.looked_up)
    return [*(_topic(topic.name) for topic in pipeline.topics), *(_table(table.identifier) for table in tables)]


def _columns(pipeline: Pipeline) -> Iterator[tuple[Place, Place]]:
    """Pairs of a source column and a column of the pipeline's table that is computed from it."""
    for name, places in by_source(pipeline).items():
        for source, origin in places:
            key = _topic(source.name) if isinstance(source, Topic) else _table(source.identifier)
            yield (key, origin), (_table(pipeline.table.identifier), name)


def _with_column(part: LineagePart, name: str, pipeline: Pipeline) -> LineagePart:
    """The part with a column, such as one of Kafka's, that its own list does not have."""
    if any(column.name == name for column in part.columns):
        return part
    column = next((column for column in pipeline.kafka_columns if column.name == name), None)
    return replace(part, columns=(*part.columns, column)) if column else part
