"""Deleting what Sluice keeps: services on this machine, tables wherever they are, and its files in `.sluice`.

*Guarantee* Anything else stays, and is listed, such as the files of exports. The preview and the deletion use one list.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from framework.base.errors import RefusedError, SluiceError
from framework.base.home import home, read
from framework.core.iceberg import metadata, published, table_state
from framework.core.rules import attempts, journal, protocol
from framework.core.spark import warm_jvm
from framework.features.export import records as export_records
from framework.host import class_archive, ui
from framework.machine import services
from framework.machine.java import jars as jars_
from framework.machine.jvm import build
from framework.operations.drop import drop, unpublish
from framework.operations.drop.unpublish import Publication
from framework.plan import FOLLOWED, Catalog, Pipeline, Plan
from framework.systems import catalogs

_HEX = "[0-9a-f]"
# Files that Sluice writes below `.sluice`, as patterns: SLUICE_HOME may be a folder in which others have files of such names.
# The functions below find services, Dagster, notes, records of exports, catalogs and jars. What an interrupted `forget` has yet to delete
# stays written down.
_PATTERNS = {
    "attempts": (_HEX * 32,),
    "followers": (f"*-{FOLLOWED}*",),
    "keys": ("[0-9]*.json", "*.*.lock"),
    "programs": ("versitygw", "go.mod", "go.sum", "lock"),
    "registry": (_HEX * 16,),
    "streams": ("*.lease", "*/*.lease"),
    "warm": ("address", "jvm", "log", "turn", "lease-*"),
    "spark": ("jvm-*", "blockmgr-*", "spark-*", "artifacts-*", "warehouse"),
    ".": ("demo.log", "stream.log", "ui-*.log", "ui.lock", "duckdb-*"),
    "logs": (f"*-{_HEX * 12}.log",),
}


@dataclass(frozen=True)
class Going:
    """One item that is deleted or stopped."""

    words: str
    bytes: int
    go: Callable[[], object]


@dataclass(frozen=True)
class Cleanup:
    going: tuple[Going, ...]  # in the order of deletion
    staying: tuple[str, ...]


def plan_cleanup(plan: Plan, jars: bool) -> Cleanup:
    """The items that `sluice clean` deletes, and those that stay. Refused while something could still write."""
    if attempts.alive():
        raise SluiceError("run-under-way", "a run is under way", "stop it first; see `sluice run` and Dagster's runs")
    if address := ui.running():
        raise SluiceError("ui-running", f"Dagster runs at {address}", "stop `sluice ui` first, by Ctrl-C where it runs")
    staying: list[str] = []
    publications = tuple(_publications(plan))
    # A catalog may be a service.
    whole_catalogs = [catalog for catalog in plan.catalogs if _goes_whole(catalog)]
    going = [
        *_listings(plan, publications, whole_catalogs),
        *_tables(plan, publications, whole_catalogs, staying),
        *_services(),
        *_files(plan, whole_catalogs, jars),
    ]
    return Cleanup(tuple(going), (*staying, *export_records.left_files(), *_left(going)))


def _services() -> Iterator[Going]:
    for state in services.status():
        if state.pid is not None:
            yield Going(f"service {state.name}, process {state.pid}, is stopped", 0, partial(services.down, (state.name,)))
    if jvm := warm_jvm.living_jvm():
        yield Going(f"the warm Spark, process {jvm.pid}, is stopped", 0, warm_jvm.end)


def _publications(plan: Plan) -> Iterator[tuple[Pipeline, Publication]]:
    """The listings in other catalogs of tables that are deleted."""
    for pipeline in plan.pipelines:
        with suppress(RefusedError):
            drop.of_pipeline(pipeline)
            yield from (
                (pipeline, publication)
                for publication in unpublish.of_pipeline(plan, pipeline)
                if publication.listed_table is not None
            )


def _listings(
    plan: Plan, publications: Sequence[tuple[Pipeline, Publication]], whole_catalogs: Sequence[Catalog]
) -> Iterator[Going]:
    """The listings in catalogs that are not deleted as a whole."""
    for pipeline, publication in publications:
        if publication.catalog not in {catalog.name for catalog in whole_catalogs}:
            yield Going(f"the name {publication.words}", 0, partial(unpublish.end, plan, pipeline, publication))


def _tables(
    plan: Plan, publications: Sequence[tuple[Pipeline, Publication]], whole_catalogs: Sequence[Catalog], staying: list[str]
) -> Iterator[Going]:
    """The tables of these specs, in catalogs that are not deleted as a whole."""
    for catalog in plan.catalogs:
        if catalog in whole_catalogs:
            continue
        own_identifiers: set[str] = set()
        for pipeline in plan.pipelines:
            if pipeline.table.catalog == catalog:
                try:
                    for table in drop.of_pipeline(pipeline):
                        own_identifiers.add(table.identifier)
                        staying += [f"{path}, which {table.name} names and which is not in its folder" for path in table.outside]
                        yield Going(f"table {table.words}", table.bytes, partial(drop.drop, table, True))
                except RefusedError as refused:
                    staying.append(f"table {catalog.name}.{pipeline.table.identifier}: {refused.message}")
        component = catalogs.client_of(catalog)
        own_identifiers |= {publication.identifier for _, publication in publications if publication.catalog == catalog.name}
        other_tables = sorted(set(metadata.names(catalog)) - own_identifiers)
        if place := component.where():
            others_text = f", which still has {', '.join(other_tables)}" if other_tables else ", then without tables"
            staying.append(f"catalog {catalog.name} in {place}{others_text}")


def _goes_whole(catalog: Catalog) -> bool:
    """Whether a catalog is in `.sluice`, with its warehouse, and has no table of others."""
    component = catalogs.client_of(catalog)
    # Links and `..` followed: what is elsewhere is not Sluice's alone.
    places = [place.resolve() for place in component.places()]
    inside = component.on_this_machine and bool(places) and all(home().resolve() in place.parents for place in places)
    return inside and all(map(partial(_is_ours, catalog), metadata.names(catalog))) and not _has_more(catalog)


def _has_more(catalog: Catalog) -> bool:
    """Whether a catalog's folders have files outside its tables' folders, such as those of another catalog with the same warehouse."""
    folders = set()
    for name in metadata.names(catalog):
        if (table := metadata.read(catalog, name)) is not None:
            folders.add(Path(table.files.path(str(table.document["location"]))).resolve())
    warehouses = [place.resolve() for place in catalogs.client_of(catalog).places() if place.is_dir()]
    files = (path for warehouse in warehouses for path in warehouse.rglob("*") if path.is_file())
    return any(folders.isdisjoint(path.parents) for path in files)


def _is_ours(catalog: Catalog, identifier: str) -> bool:
    """Whether a table is a pipeline's, or a listing of one."""
    table = table_state.table(catalog, identifier)
    if table is None:
        return True
    if protocol.ADOPTED in table.properties:
        return False
    main = table.current_snapshot()
    listed = main is not None and main.summary is not None and published.is_shown({"summary": main.summary.additional_properties})
    return listed or protocol.OWNER in table.properties or protocol.OF in table.properties


def _files(plan: Plan, whole_catalogs: Sequence[Catalog], jars: bool) -> Iterator[Going]:
    for path in dict.fromkeys(_existing(plan, whole_catalogs, jars)):
        if path.exists() or path.is_symlink():
            yield Going(str(path), _size(path), partial(_remove, path))


def _existing(plan: Plan, whole_catalogs: Sequence[Catalog], jars: bool) -> Iterator[Path]:
    staying_places = [
        place for catalog in plan.catalogs if catalog not in whole_catalogs for place in catalogs.client_of(catalog).places()
    ]
    for place in (place for catalog in whole_catalogs for place in catalogs.client_of(catalog).places()):
        if not any(_overlap(place.resolve(), other.resolve()) for other in staying_places):  # a warehouse may be of two
            yield place
    yield from (services.folder(name) for name in services.services() if (services.folder(name) / "lock").exists())
    settings = home() / "dagster" / "dagster.yaml"
    with suppress(OSError, ValueError):
        if "nux: {enabled: false}" in read(settings):
            yield settings.parent
    yield from _of_environments(home() / "pipelines", [journal.file(name) for name in journal.recorded()])
    yield from _of_environments(
        home() / "exports", [export_records.file(name) for name in export_records.exports() if export_records.by_window(name)]
    )
    for name, patterns in _PATTERNS.items():
        yield from _whole(home() / name, [path for pattern in patterns for path in sorted((home() / name).glob(pattern))])
    if jars:
        jars_folder = home() / "jars"
        sets = [jars_folder / name for name in (*jars_.sets(later=True), build.FOLDER, "lock")]
        set_files = [path for path in sets if path.exists()] + [
            path for pattern in class_archive.PATTERNS for path in jars_folder.glob(pattern)
        ]
        yield from [jars_folder] if jars_folder.is_symlink() else _whole(jars_folder, set_files)


def _overlap(place: Path, other_place: Path) -> bool:
    return place == other_place or place in other_place.parents or other_place in place.parents


def _whole(folder: Path, files: list[Path]) -> list[Path]:
    """The folder itself, if it holds nothing but these files; otherwise the files."""
    whole = folder != home() and folder.is_dir() and set(folder.iterdir()) == set(files)
    return [folder] if whole else files


def _of_environments(folder: Path, files: list[Path]) -> list[Path]:
    """Like `_whole()`, for a folder in which each environment may have a folder of its own."""
    inner_folders = sorted({path.parent for path in files} - {folder})
    deleted_paths = [
        entry for place in inner_folders for entry in _whole(place, [path for path in files if path.parent == place])
    ]
    return _whole(folder, [*(path for path in files if path.parent == folder), *deleted_paths])


def _left(going: list[Going]) -> Iterator[str]:
    """The entries of `.sluice` that stay."""
    deleted_paths = {item.words for item in going}
    for path in sorted(home().iterdir()) if home().exists() else ():
        children = sorted(path.iterdir()) if path.is_dir() and not path.is_symlink() else []
        if str(path) not in deleted_paths and not (children and all(str(child) in deleted_paths for child in children)):
            yield str(path)


def _remove(path: Path) -> None:
    """Delete a file or folder, and the folders above it once they are empty."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    for above in path.parents:
        if above != home() and home() not in above.parents:
            return
        with suppress(OSError):
            above.rmdir()


def _size(path: Path) -> int:
    if path.is_symlink():
        return 0
    files = path.rglob("*") if path.is_dir() else (path,)
    return sum(file.lstat().st_size for file in files if file.is_file() or file.is_symlink())
