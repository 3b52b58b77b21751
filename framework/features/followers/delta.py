"""Shows a table as a table of Delta Lake, by a Delta log over the same Parquet files. Nothing is copied.

Guarantee: the log shows a snapshot of the table, each by one commit of its own; a run that dies leaves the snapshot before. A run that
stopped and wakes up after another one has shown a later snapshot writes nothing: each commit is a transaction of the table's name.
Limit: Delta has no deletion vectors of Iceberg, and finds columns by name. Where rows were deleted or changed, the log shows the table as
it was last compacted; a column of another name or type in older files is refused. The log is for readers: Delta's `VACUUM` would delete
Iceberg's files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from framework.base.errors import Problem, SluiceError
from framework.core.follow.committed import FollowInput
from framework.core.follow.taken import taken
from framework.core.iceberg.metadata import DataFile
from framework.documents.draft import Draft
from framework.language.options import OptionGroup, option
from framework.plan import Follower, Pipeline
from framework.systems import catalogs

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, Field, Schema
    from deltalake.transaction import AddAction, RemoveAction

_OURS = "sluice "  # the beginning of the log's name, before the id of the table that it shows
_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Options(OptionGroup):
    """Show the table as a table of Delta Lake."""

    known_by: ClassVar[str | None] = "delta"

    delta: Literal[True] = option(
        "Keep a log of Delta Lake over the table's own files, in the table's folder, for readers. Changed and deleted rows of an "
        "`upsert` or `history` are shown once the table is compacted.",
        example="true",
    )  # fmt: skip


def plan_follower(written: Options, pipeline: Pipeline, draft: Draft) -> Follower | None:
    if not pipeline.table.catalog.type:  # which was reported
        return None
    if not catalogs.client_of(pipeline.table.catalog).on_this_machine:
        message = "a Delta log in an object store is not in this version of Sluice"
        hint = "remove `delta` from `also`, or keep the table in a catalog with a `warehouse` on this machine"
        draft.problems.append(Problem(written.place(), "not-in-this-version", message, hint))
        return None
    says = ["over the table's own files"]
    if pipeline.table.rows_change:
        says.append("as it was last compacted")
    return Follower(type="delta", name="log", where=written.place(), says=tuple(says), options=None, follow=follow, by_files=True)


def follow(committed: FollowInput) -> int:
    from deltalake import Schema
    from deltalake.exceptions import CommitFailedError

    root = committed.table.files.path(str(committed.table.document["location"])).rstrip("/")
    if "%" in root:
        hint = "move the catalog's warehouse to a folder without it, or remove `delta` from `also`"
        raise SluiceError(
            "delta-cannot-show", f"the table's folder {root} has a `%` in its name, which Delta's library reads wrongly", hint
        )
    files = {_inside(root, committed.table.files.path(file.location)): file for file in committed.files()}
    table_schema = _schema(committed)
    log, log_schema = _log(root), Schema.from_arrow(_of_delta(table_schema))
    _refuse_later(committed, log)
    added_columns = None if log is None or log.metadata().name != _name(committed) else _new_columns(log, log_schema)
    listed = set() if log is None or added_columns is None else _listed(log)
    added_files = {path: file for path, file in files.items() if path not in listed}
    _refuse_other_columns(committed, root, added_files, table_schema)
    adds = [_add(path, file) for path, file in added_files.items()]
    try:
        if log is None or added_columns is None:
            _write_whole(committed, root, log_schema, adds)
        else:
            _write_changes(committed, log, added_columns, log_schema, [*adds, *map(_remove, sorted(listed - files.keys()))])
    except CommitFailedError:  # a transaction of the same name came between
        raise taken(committed.follower) from None
    return sum(file.rows for file in added_files.values())


def _refuse_later(committed: FollowInput, log: DeltaTable | None) -> None:
    """Refuses if another process has shown a later commit than the tag had when this step began."""
    last_commit = log.transaction_version(_name(committed)) if log is not None else None
    if last_commit is None or last_commit == committed.until:
        return
    since = committed.table.snapshots.get(committed.step.since)
    if since is not None and last_commit > since.get("sequence-number", 0):
        raise taken(committed.follower)


def _name(committed: FollowInput) -> str:
    return f"{_OURS}{committed.table.uuid}"


def _new_columns(log: DeltaTable, schema: Schema) -> list[Field] | None:
    """The columns that the log does not have yet; None if the log differs in anything else."""
    from deltalake import Schema

    existing_names = {field.name for field in log.schema().fields}
    new = [field for field in schema.fields if field.name not in existing_names]
    return new if Schema([*log.schema().fields, *new]) == schema else None


def _write_whole(committed: FollowInput, root: str, schema: Schema, adds: list[AddAction]) -> None:
    """Writes a log that begins, or begins again, with these files, in one commit."""
    from deltalake.transaction import create_table_with_add_actions

    create_table_with_add_actions(
        root, schema, adds, mode="overwrite", name=_name(committed), description=committed.pipeline.table.doc or None,
        commit_properties=_properties(committed),
    )  # fmt: skip


def _write_changes(
    committed: FollowInput, log: DeltaTable, new_columns: list[Field], schema: Schema, actions: list[AddAction | RemoveAction]
) -> None:
    from deltalake import DeltaTable

    if new_columns:
        log.alter.add_columns(new_columns)
        log = DeltaTable(log.table_uri)
        _refuse_later(committed, log)
    if actions:
        log.create_write_transaction(actions, "append", schema, commit_properties=_properties(committed))


def _properties(committed: FollowInput) -> CommitProperties:
    from deltalake import CommitProperties, Transaction

    return CommitProperties(app_transactions=[Transaction(_name(committed), committed.until)])


def _schema(committed: FollowInput) -> Any:
    """The table's columns as Arrow has them, with their ids."""
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.schema import Schema

    return schema_to_pyarrow(Schema.model_validate(committed.table.schema))


def _of_delta(of_table: Any) -> Any:
    """The columns for the log. Each may be null, since the log's schema must fit older files, too. The columns have no ids, since
    readers would search for columns by ids and find none."""
    import pyarrow

    return pyarrow.schema([_field_of_delta(field) for field in of_table])


def _field_of_delta(field: Any) -> Any:
    import pyarrow

    field_type = field.type
    if pyarrow.types.is_struct(field_type):
        field_type = pyarrow.struct([_field_of_delta(inner) for inner in field_type])
    elif _is_list(field_type):
        field_type = pyarrow.list_(_field_of_delta(field_type.value_field))
    elif pyarrow.types.is_map(field_type):
        field_type = pyarrow.map_(
            pyarrow.field("key", field_type.key_type, nullable=False), _field_of_delta(field_type.item_field)
        )
    return pyarrow.field(field.name, field_type, nullable=True)


def _log(root: str) -> DeltaTable | None:
    """The log in a table's folder; None if there is none. Refuses a log that Sluice did not write."""
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(root):
        return None
    log = DeltaTable(root)
    if not (log.metadata().name or "").startswith(_OURS):
        hint = "move its `_delta_log` away, or remove `delta` from `also`"
        raise SluiceError("delta-of-another", f"{root} has a log of Delta Lake that Sluice did not write", hint)
    return log


def _listed(log: DeltaTable) -> set[str]:
    """The paths of the log's files, without the log's encoding of special characters."""
    from urllib.parse import unquote

    import pyarrow

    return {unquote(path) for path in pyarrow.table(log.get_add_actions()).column("path").to_pylist()}


def _add(path: str, file: DataFile) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(path, file.bytes, {}, 0, True, f'{{"numRecords": {file.rows}}}')


def _remove(path: str) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(path, True, 0)


def _inside(root: str, path: str) -> str:
    """The path relative to the table's folder, as the log has it."""
    return path.removeprefix(f"{root}/")


def _refuse_other_columns(committed: FollowInput, root: str, files: Iterable[str], schema: Any) -> None:
    """Refuses files whose columns have other names or types than the table's current ones: Delta would show null or fail."""
    import pyarrow.parquet

    for path in files:
        difference = next(_differences(pyarrow.parquet.read_schema(f"{root}/{path}"), schema), None)
        if difference:
            hint = f"`sluice rebuild {committed.pipeline.name}` writes all files again; or remove `delta` from `also`"
            raise SluiceError("delta-cannot-show", f"{difference} in older files, and Delta finds columns by their names", hint)


def _differences(of_file: Any, of_table: Any, path: str = "") -> Iterator[str]:
    """The columns of a file whose names or types differ from the table's columns with the same ids."""
    by_id = {field.metadata[_ID]: field for field in of_table if field.metadata}
    names = {field.name: field for field in of_table}
    for field in of_file:
        column_path = f"{path}{field.name}"
        table_field = by_id.get((field.metadata or {}).get(_ID))
        if table_field is None:
            if field.name in names:
                yield f"`{column_path}` was another column"
        elif table_field.name != field.name:
            yield f"`{path}{table_field.name}` is called `{field.name}`"
        else:
            yield from _other_types(field.type, table_field.type, column_path)


def _other_types(of_file: Any, of_table: Any, column_path: str) -> Iterator[str]:
    """The differences between one column's types. Long and short texts and lists are the same in a file."""
    from pyarrow import types

    if types.is_struct(of_file) and types.is_struct(of_table):
        yield from _differences(of_file, of_table, f"{column_path}.")
    elif types.is_map(of_file) and types.is_map(of_table):
        yield from _other_types(of_file.key_type, of_table.key_type, column_path)
        yield from _other_types(of_file.item_type, of_table.item_type, column_path)
    elif _is_list(of_file) and _is_list(of_table):
        yield from _other_types(of_file.value_type, of_table.value_type, column_path)
    elif str(of_file).removeprefix("large_") != str(of_table).removeprefix("large_"):
        yield f"`{column_path}` is {of_file}, not {of_table},"


def _is_list(field_type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(field_type) or types.is_large_list(field_type))
