"""Lists a table in another catalog, too: the same table, not a copy.

Guarantee: what is listed there is a commit of the table, and each listing one commit of that catalog. What somebody else changed there is
reported, never overwritten.
Limit: the files must be where readers of the other catalog can read them. Readers there see main alone, and the snapshots that it comes
from; one that has expired is listed until the next commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from framework import catalogs
from framework.catalogs import Current, Moved
from framework.engine.follow.committed import Committed
from framework.engine.iceberg import metadata, published
from framework.engine.iceberg.metadata import Metadata
from framework.errors import Problem, SluiceError, Where
from framework.model import Catalog, Follower, ListedTable, Listing, Pipeline
from framework.plan.draft import Draft, unknown
from framework.spec.kinds.pipeline import Publish as Options

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
        options=ListedTable(target, identifier), newest=True,
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
    target = catalogs.of(listed.catalog)
    there = metadata.read(listed.catalog, listed.identifier)
    shown = published.document(to.table, to.step.until)
    if there is not None:
        _refuse_changed(to, there, shown)
    elif not to.first:
        raise _changed(to, "it is not there any more")
    if there is None or not _shows(there, shown):
        # Until the tag is moved, a snapshot may be shown twice.
        current = Current(there.file, there.document, there.files) if there else None
        try:
            _show(to, target, current, shown)
        except Moved:
            raise SluiceError(
                "published-elsewhere",
                f"another program changed it in `{listed.catalog.name}` just now",
                "the next run looks again",
            ) from None
        except (catalogs.Refused, OSError) as error:
            raise metadata.unreachable(listed.catalog, error) from None
    for old in published.files(to.table, to.follower)[:-2]:
        published.delete(to.table, old)
    return 0


def _show(to: Committed, target: catalogs.Catalog, current: Current | None, shown: Mapping[str, Any]) -> None:
    identifier = to.follower.options.identifier
    if current is not None and target.writes_metadata:
        target.show(identifier, current, Current(current.location, shown, current.files))
        return
    written = published.write(to.table, shown, to.follower)
    if not target.writes_metadata:
        target.files_of(identifier).read(written.location)  # what it cannot read, it does not list
    target.show(identifier, current, written)


def _shows(there: Metadata, shown: Mapping[str, Any]) -> bool:
    parts = ("current-snapshot-id", "current-schema-id", "default-spec-id", "default-sort-order-id")
    return all(there.document.get(part) == shown[part] for part in parts)


def _refuse_changed(to: Committed, there: Metadata, shown: Mapping[str, Any]) -> None:
    """Refuses if the name shows another table, or what another program has made of this one."""
    reason = next(_changes(to, there, shown), None)
    if reason:
        raise _changed(to, reason)


def _changes(to: Committed, there: Metadata, shown: Mapping[str, Any]) -> Iterator[str]:
    if there.uuid != to.table.uuid:
        yield f"another table is there, {there.document['location']}"
    elif any(name.startswith(published.OURS) for name in there.properties):
        yield "it is the table's own catalog, by another name"
    elif (there.main or {}).get("snapshot-id") not in _may_show(to):
        yield f"its newest snapshot is {(there.main or {}).get('snapshot-id')}, which Sluice did not list there"
    elif set(there.refs) - {"main"}:
        yield f"it has {', '.join(f'`{name}`' for name in sorted(set(there.refs) - {'main'}))} beside main"
    elif not catalogs.of(to.follower.options.catalog).writes_metadata and not published.is_own(to.table, to.follower, there.file):
        yield f"another program wrote its metadata, {there.files.path(there.file)}"
    for forms, number in _FORMS:
        known = {each[number]: each["fields"] for each in shown[forms]}
        if any(known.get(each[number]) != each["fields"] for each in there.document[forms]):
            yield f"its {forms} are others"


def _may_show(to: Committed) -> set[int]:
    """The snapshot that was shown last, and those since: a run that died may have shown one of them."""
    number = {id_: each.get("sequence-number") or 0 for id_, each in to.table.snapshots.items()}
    last = number.get(to.step.since, 0)
    return {to.step.since, *(id_ for id_, each in number.items() if each > last)}


def _changed(to: Committed, reason: str) -> SluiceError:
    listed: ListedTable = to.follower.options
    message = f"{listed.identifier} was changed in the catalog `{listed.catalog.name}`: {reason}"
    hint = f"`sluice unpublish {to.pipeline.name} {listed.catalog.name}` ends it there, and the next run lists it again"
    return SluiceError("published-changed", message, hint)
