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
from framework.core.follow.committed import Committed
from framework.core.iceberg import metadata, published
from framework.core.iceberg.metadata import Metadata
from framework.documents.draft import Draft, unknown
from framework.documents.pipeline.written import Publish as Options
from framework.plan import Catalog, Follower, ListedTable, Listing, Pipeline
from framework.systems import catalogs
from framework.systems.catalogs import Current, Moved

_FORMS = (("schemas", "schema-id"), ("partition-specs", "spec-id"), ("sort-orders", "order-id"))


def resolve(written: Options, pipeline: Pipeline, draft: Draft) -> Follower | None:
    listing = Listing(written.catalog, None, written.place("catalog"))
    return _follower(listing, written.as_ or pipeline.table.identifier, pipeline, draft)


def resolve_for_all(listing: Listing, pipeline: Pipeline, draft: Draft) -> Follower | None:
    """Of a catalog that lists all its tables in another one."""
    namespace = listing.namespace or pipeline.table.namespace
    return _follower(listing, f"{namespace}.{pipeline.table.name}", pipeline, draft)


def _follower(listing: Listing, identifier: str, pipeline: Pipeline, draft: Draft) -> Follower | None:
    own, target = pipeline.table.catalog, draft.catalogs.get(listing.catalog)
    if target is None:
        if ("catalog", listing.catalog) not in draft.written.names:
            unknown(draft, "catalog", listing.catalog, listing.where, draft.catalogs)
        return None
    problem = _problem(own, target, listing.where)
    if problem:
        draft.problems.append(problem)
        return None
    return Follower(
        type="catalog", name=f"{target.name}.{identifier}", where=listing.where, says=("the same table",),
        options=ListedTable(target, identifier), follow=follow, latest_only=True,
    )  # fmt: skip


def _problem(own: Catalog, target: Catalog, where: Where) -> Problem | None:
    if own.name == target.name:
        hint = "name another catalog, or remove it"
        return Problem(where, "published-in-itself", f"the table is in the catalog `{target.name}` already", hint)
    if not own.type:  # the missing catalog was reported
        return None
    here, there = catalogs.of(own).on_this_machine, catalogs.of(target).on_this_machine
    if here != there:
        message = f"the table's files are {_place(here)}, and the catalog `{target.name}` is for files {_place(there)}"
        hint = (
            "keep the table in an object store: a `warehouse` that begins with `s3://`"
            if here
            else "name a catalog of that object store"
        )
        return Problem(where, "not-shared", message, hint)
    return None


def _place(on_this_machine: bool) -> str:
    return "on this machine" if on_this_machine else "in an object store"


def follow(to: Committed) -> int:
    listed: ListedTable = to.follower.options
    there = metadata.read(listed.catalog, listed.identifier)
    listed_document = published.document(to.table, to.step.until)
    if there is not None:
        _refuse_changed(to, there, listed_document)
    elif not to.is_first:
        raise _changed(to, "it is not there any more")
    # Listed before: what another machine writes from here on may be what is listed then.
    older = published.files(to.table, to.follower)
    kept = {there.file} if there else set()  # readers may just have begun
    if there is None or not _shows(there, listed_document):  # else a run died behind this
        kept.add(_show(to, there, listed_document))
    for old in older:
        if old not in {to.table.files.path(each) for each in kept}:
            published.delete(to.table, old)
    return 0


def _show(to: Committed, there: Metadata | None, listed_document: Mapping[str, Any]) -> str:
    """Lists it; the location of its metadata, where that is a file of ours."""
    listed: ListedTable = to.follower.options
    target = catalogs.of(listed.catalog)
    current = Current(there.file, there.document, there.files) if there else None
    if current is not None and target.writes_metadata:
        new = Current(current.location, listed_document, current.files)
    else:
        new = _written(to, target, listed_document)
    try:
        target.show(listed.identifier, current, new)
    except Moved:
        if current is None:
            raise _taken(to, "a view, or a table of another kind") from None
        message = f"another program changed it in `{listed.catalog.name}` just now"
        raise SluiceError("published-elsewhere", message, "the next run looks again") from None
    except Exception as error:  # whatever its library raises
        raise metadata.unreachable(listed.catalog, error, "did not list it") from None
    return new.location


def _written(to: Committed, target: catalogs.Catalog, listed_document: Mapping[str, Any]) -> Current:
    listed: ListedTable = to.follower.options
    try:
        new = published.write(to.table, listed_document, to.follower)
    except OSError as error:
        raise metadata.unreachable(to.pipeline.table.catalog, error, "cannot be written to") from None
    if target.writes_metadata:
        return new
    try:
        target.files_of(listed.identifier).read(new.location)
    except OSError as error:  # what it cannot read, it does not list
        hint = f"give the login of `{listed.catalog.name}` the right to read the table's folder"
        message = f"the catalog `{listed.catalog.name}` cannot read the table's files: {error}"
        raise SluiceError("not-shared", message, hint) from None
    return new


def _shows(there: Metadata, listed_document: Mapping[str, Any]) -> bool:
    parts = ("current-snapshot-id", "current-schema-id", "default-spec-id", "default-sort-order-id")
    return all(there.document.get(part) == listed_document[part] for part in parts)


def _refuse_changed(to: Committed, there: Metadata, listed_document: Mapping[str, Any]) -> None:
    """Refuses if the name shows another table, or what another program has made of this one."""
    if there.uuid != to.table.uuid:
        raise _taken(to, f"another table, {there.document['location']}")
    reason = next(_changes(to, there, listed_document), None)
    if reason:
        raise _changed(to, reason)


def _changes(to: Committed, there: Metadata, listed_document: Mapping[str, Any]) -> Iterator[str]:
    if published.is_table_itself(there):
        yield "it is the table's own catalog, by another name"
    elif not catalogs.of(to.follower.options.catalog).writes_metadata:
        if not published.is_own(to.table, to.follower, there.file):
            yield f"another program wrote its metadata, {there.files.path(there.file)}"
    elif there.refs.get("main") not in _may_show(to):
        yield f"its newest snapshot is {there.refs.get('main')}, which Sluice did not list there"
    elif others := sorted(set(there.refs) - {"main"}):
        yield f"it has {', '.join(f'`{name}`' for name in others)} beside main"
    for forms, number in _FORMS:
        own = {each[number]: _text(each) for each in listed_document[forms]}
        if any(own.get(each[number]) != _text(each) for each in there.document[forms]):
            yield f"its {forms} are others"


def _text(form: Mapping[str, Any]) -> str:
    """Its fields, to compare: servers write `decimal(9,2)` and `decimal(9, 2)`."""
    return json.dumps(form["fields"], sort_keys=True).replace(" ", "")


def _may_show(to: Committed) -> set[int]:
    """The snapshot that was shown last, and those since: a run that died may have shown one of them."""
    number = {id_: each.get("sequence-number") or 0 for id_, each in to.table.snapshots.items()}
    last = number.get(to.step.since, 0)
    return {to.step.since, to.step.until, *(id_ for id_, each in number.items() if each > last)}


def _taken(to: Committed, by: str) -> SluiceError:
    listed: ListedTable = to.follower.options
    message = f"in the catalog `{listed.catalog.name}` {listed.identifier} is {by}"
    return SluiceError("name-taken", message, "give the table another name there by `as`, or remove the other one")


def _changed(to: Committed, reason: str) -> SluiceError:
    listed: ListedTable = to.follower.options
    message = f"{listed.identifier} was changed in the catalog `{listed.catalog.name}`: {reason}"
    hint = f"`sluice unpublish {to.pipeline.name} {listed.catalog.name}` ends it there, and the next run lists it again"
    return SluiceError("published-changed", message, hint)
