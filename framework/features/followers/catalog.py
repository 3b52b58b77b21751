"""Lists a table in another catalog, too: the same table, not a copy.

Guarantee: what is listed there is a commit of the table, and each listing one commit of that catalog. What somebody else changed there is
reported, never overwritten.
Limit: the files must be where readers of the other catalog can read them. Readers there see main alone, and the snapshots that it comes
from; one that has expired is listed until the next commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from framework.base.errors import Problem, SluiceError, Where
from framework.core.follow.committed import FollowInput
from framework.core.iceberg import metadata, published
from framework.core.iceberg.main_line import number
from framework.core.iceberg.metadata import Metadata
from framework.documents.draft import Draft, unknown
from framework.documents.pipeline.written import Publish as Options
from framework.plan import Catalog, Follower, ListedTable, Listing, Pipeline
from framework.systems import catalogs
from framework.systems.catalogs import ListedMetadata, Moved

_FORMS = (("schemas", "schema-id"), ("partition-specs", "spec-id"), ("sort-orders", "order-id"))


def plan_follower(written: Options, pipeline: Pipeline, draft: Draft) -> Follower | None:
    listing = Listing(written.catalog, None, written.place("catalog"))
    return _follower(listing, written.as_ or pipeline.table.identifier, pipeline, draft)


def resolve_for_all(listing: Listing, pipeline: Pipeline, draft: Draft) -> Follower | None:
    """The follower of a table whose catalog lists all its tables in another catalog."""
    namespace = listing.namespace or pipeline.table.namespace
    return _follower(listing, f"{namespace}.{pipeline.table.name}", pipeline, draft)


def _follower(listing: Listing, identifier: str, pipeline: Pipeline, draft: Draft) -> Follower | None:
    own_catalog, target = pipeline.table.catalog, draft.catalogs.get(listing.catalog)
    if target is None:
        if ("catalog", listing.catalog) not in draft.written.names:
            unknown(draft, "catalog", listing.catalog, listing.where, draft.catalogs)
        return None
    problem = _problem(own_catalog, target, listing.where)
    if problem:
        draft.problems.append(problem)
        return None
    return Follower(
        type="catalog", name=f"{target.name}.{identifier}", where=listing.where, says=("the same table",),
        options=ListedTable(target, identifier), follow=follow, latest_only=True,
    )  # fmt: skip


def _problem(own_catalog: Catalog, target: Catalog, where: Where) -> Problem | None:
    if own_catalog.name == target.name:
        hint = "name another catalog, or remove it"
        return Problem(where, "published-in-itself", f"the table is in the catalog `{target.name}` already", hint)
    if not own_catalog.type:  # the missing catalog was reported
        return None
    is_here, target_is_here = catalogs.client_of(own_catalog).on_this_machine, catalogs.client_of(target).on_this_machine
    if is_here != target_is_here:
        message = (
            f"the table's files are {_place(is_here)}, and the catalog `{target.name}` is for files {_place(target_is_here)}"
        )
        hint = (
            "keep the table in an object store: a `warehouse` that begins with `s3://`"
            if is_here
            else "name a catalog of that object store"
        )
        return Problem(where, "not-shared", message, hint)
    return None


def _place(on_this_machine: bool) -> str:
    return "on this machine" if on_this_machine else "in an object store"


def follow(committed: FollowInput) -> int:
    listed: ListedTable = committed.follower.options
    existing_table = metadata.read(listed.catalog, listed.identifier)
    listed_document = published.document(committed.table, committed.step.until)
    if existing_table is not None:
        _refuse_changed(committed, existing_table, listed_document)
    elif not committed.is_first:
        raise _changed(committed, "it is not there any more")
    # These are listed first, since a file that another machine writes from here on may be the one that is listed in the end.
    old_files = published.files(committed.table, committed.follower)
    kept_files = {existing_table.file} if existing_table else set()  # readers may just have begun
    if existing_table is None or not _shows(existing_table, listed_document):  # else a run died after it had listed this
        kept_files.add(_show(committed, existing_table, listed_document))
    for old_file in old_files:
        if old_file not in {committed.table.files.path(file) for file in kept_files}:
            published.delete(committed.table, old_file)
    return 0


def _show(committed: FollowInput, existing_table: Metadata | None, listed_document: Mapping[str, Any]) -> str:
    """Lists the table, and returns the location of the metadata that the other catalog gets."""
    listed: ListedTable = committed.follower.options
    target = catalogs.client_of(listed.catalog)
    current = ListedMetadata(existing_table.file, existing_table.document, existing_table.files) if existing_table else None
    if current is not None and target.writes_metadata:
        new = ListedMetadata(current.location, listed_document, current.files)
    else:
        new = _written(committed, target, listed_document)
    try:
        target.show(listed.identifier, current, new)
    except Moved:
        if current is None:
            raise _taken(committed, "a view, or a table of another kind") from None
        message = f"another program changed it in `{listed.catalog.name}` just now"
        raise SluiceError("published-elsewhere", message, "the next run looks again") from None
    except Exception as error:  # whatever its library raises
        raise metadata.unreachable(listed.catalog, error, "did not list it") from None
    return new.location


def _written(committed: FollowInput, target: catalogs.CatalogClient, listed_document: Mapping[str, Any]) -> ListedMetadata:
    listed: ListedTable = committed.follower.options
    try:
        new = published.write(committed.table, listed_document, committed.follower)
    except OSError as error:
        raise metadata.unreachable(committed.pipeline.table.catalog, error, "cannot be written to") from None
    if target.writes_metadata:
        return new
    try:
        target.files_of(listed.identifier).read(new.location)
    except OSError as error:  # a catalog lists only metadata that it can read
        hint = f"give the login of `{listed.catalog.name}` the right to read the table's folder"
        message = f"the catalog `{listed.catalog.name}` cannot read the table's files: {error}"
        raise SluiceError("not-shared", message, hint) from None
    return new


def _shows(existing_table: Metadata, listed_document: Mapping[str, Any]) -> bool:
    parts = ("current-snapshot-id", "current-schema-id", "default-spec-id", "default-sort-order-id")
    return all(existing_table.document.get(part) == listed_document[part] for part in parts)


def _refuse_changed(committed: FollowInput, existing_table: Metadata, listed_document: Mapping[str, Any]) -> None:
    """Refuses if the name stands for another table, or if another program has changed this one."""
    if existing_table.uuid != committed.table.uuid:
        raise _taken(committed, f"another table, {existing_table.document['location']}")
    reason = next(_changes(committed, existing_table, listed_document), None)
    if reason:
        raise _changed(committed, reason)


def _changes(committed: FollowInput, existing_table: Metadata, listed_document: Mapping[str, Any]) -> Iterator[str]:
    if published.is_table_itself(existing_table):
        yield "it is the table's own catalog, by another name"
    elif not catalogs.client_of(committed.follower.options.catalog).writes_metadata:
        if not published.is_own(committed.table, committed.follower, existing_table.file):
            yield f"another program wrote its metadata, {existing_table.files.path(existing_table.file)}"
    elif existing_table.refs.get("main") not in _may_show(committed):
        yield f"its newest snapshot is {existing_table.refs.get('main')}, which Sluice did not list there"
    elif other_refs := sorted(set(existing_table.refs) - {"main"}):
        yield f"it has {', '.join(f'`{name}`' for name in other_refs)} beside main"
    for forms, id_key in _FORMS:
        own_forms = {form[id_key]: _text(form) for form in listed_document[forms]}
        if any(own_forms.get(form[id_key]) != _text(form) for form in existing_table.document[forms]):
            yield f"its {forms} are others"


def _text(form: Mapping[str, Any]) -> str:
    """The fields of a form as comparable text: some servers write `decimal(9,2)`, others `decimal(9, 2)`."""
    return json.dumps(form["fields"], sort_keys=True).replace(" ", "")


def _may_show(committed: FollowInput) -> set[int]:
    """The snapshot that was shown last and all later ones: a run that died may have shown one of them."""
    numbers = {id_: number(snapshot) for id_, snapshot in committed.table.snapshots.items()}
    last_number = numbers.get(committed.step.since, 0)
    return {committed.step.since, committed.step.until, *(id_ for id_, snapshot in numbers.items() if snapshot > last_number)}


def _taken(committed: FollowInput, owner: str) -> SluiceError:
    listed: ListedTable = committed.follower.options
    message = f"in the catalog `{listed.catalog.name}` {listed.identifier} is {owner}"
    return SluiceError("name-taken", message, "give the table another name there by `as`, or remove the other one")


def _changed(committed: FollowInput, reason: str) -> SluiceError:
    listed: ListedTable = committed.follower.options
    message = f"{listed.identifier} was changed in the catalog `{listed.catalog.name}`: {reason}"
    hint = f"`sluice unpublish {committed.pipeline.name} {listed.catalog.name}` ends it there, and the next run lists it again"
    return SluiceError("published-changed", message, hint)
