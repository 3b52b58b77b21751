"""Compiles a schema's text to descriptors, by Google's own compiler.

Cost: the compiler takes 0.1 s to load and some milliseconds for each schema.
Limit: anything else that the process writes to its stderr while a schema is compiled is lost.
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import Any

from framework.messages.formats.protobuf.imports import FILES
from framework.messages.schemas.versions import Unsupported
from framework.plan.schema import Schema

Descriptor = Any  # protobuf has no types for mypy
_ONE_AT_A_TIME = Lock()
_NO_ERROR = re.compile(r": warning:|^WARNING: |^[IW]\d{4} ")
_MOST_ERRORS = 3  # errors of the compiler in one message


@dataclass(frozen=True)
class MessageTypes:
    """The messages that a schema describes. Maps are lists of entries here, as in the messages' bytes: so they keep their order, and
    unknown fields of an entry are seen. `maps` are the names of these entries, `docs` the comments on fields by the fields' names."""

    first: Descriptor
    maps: frozenset[str]
    docs: Mapping[str, str]


@lru_cache(maxsize=128)
def messages(schema: Schema) -> MessageTypes:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files = FileDescriptorSet.FromString(_compiled(schema)).file
    maps: set[str] = set()
    docs: dict[str, str] = {}
    for file in files:
        comments = {tuple(location.path): location.leading_comments for location in file.source_code_info.location}
        for index, message in enumerate(file.message_type):
            name = f"{file.package}.{message.name}".lstrip(".")
            docs |= _docs(message, name, (4, index), comments)
            maps |= set(_map_entries(message, name))
    return MessageTypes(_first(files), frozenset(maps), docs)


@lru_cache(maxsize=128)
def to_write(schema: Schema) -> Descriptor:
    """Returns the first message type, with maps as maps."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    return _first(FileDescriptorSet.FromString(_compiled(schema)).file)


def meta(field: Descriptor) -> tuple[str, Mapping[str, str]]:
    """Returns the doc and the parameters of `(confluent.field_meta)` for a field of `messages`."""
    from google.protobuf.message_factory import GetMessageClass

    pool = field.file.pool
    try:
        options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
        extension = pool.FindExtensionByName("confluent.field_meta")
    except KeyError:  # nothing of the schema imports them
        return "", {}
    extended = options.FromString(field.GetOptions().SerializeToString()).Extensions[extension]
    entries = (
        extended.params.items()
        if hasattr(extended.params, "items")
        else ((parameter.key, parameter.value) for parameter in extended.params)
    )
    return extended.doc, dict(entries)


def _first(files: Any) -> Descriptor:
    """Returns the first message type, in a pool of its own, since other versions have other messages of the same name."""
    from google.protobuf.descriptor_pool import DescriptorPool

    main = files[-1]
    if not main.message_type:
        raise Unsupported("the schema has no message type", "a topic's messages are of the first message type in the text")
    pool = DescriptorPool()
    try:
        for file in files:
            file.ClearField("source_code_info")
            pool.AddSerializedFile(file.SerializeToString())
        return pool.FindMessageTypeByName(f"{main.package}.{main.message_type[0].name}".lstrip("."))
    except (TypeError, KeyError) as error:
        raise Unsupported(f"protobuf does not take the schema: {error}") from None


def _map_entries(message: Any, name: str) -> Iterator[str]:
    """Makes the entries of maps ordinary messages, and yields their names."""
    for inner in message.nested_type:
        yield from _map_entries(inner, f"{name}.{inner.name}")
    if message.options.map_entry:
        message.options.ClearField("map_entry")
        yield name


def _docs(message: Any, name: str, path: tuple[int, ...], comments: Mapping[tuple[int, ...], str]) -> dict[str, str]:
    docs = {
        f"{name}.{field.name}": " ".join(comments.get((*path, 2, index), "").split()) for index, field in enumerate(message.field)
    }
    for index, inner in enumerate(message.nested_type):
        docs |= _docs(inner, f"{name}.{inner.name}", (*path, 3, index), comments)
    return docs


@lru_cache(maxsize=128)
def _compiled(schema: Schema) -> bytes:
    """Returns the bytes of a FileDescriptorSet: the imported files first, the schema itself last."""
    if _is_compiled(schema.text):
        raise Unsupported("the schema is a compiled descriptor in base64, not the text of a .proto file", "register its text")
    import grpc_tools

    with tempfile.TemporaryDirectory(prefix="sluice-protobuf-") as temporary:
        folder = Path(temporary)
        main = _lay_out(schema, folder)
        compiled_file = folder / "compiled"
        code, output = _protoc(
            "protoc", f"-I{folder / 'files'}", f"-I{Path(grpc_tools.__file__).parent / '_proto'}",
            "--include_imports", "--include_source_info", f"--descriptor_set_out={compiled_file}", main,
        )  # fmt: skip
        if code == 0:
            return compiled_file.read_bytes()
    lines = [line.replace(f"{folder / 'files'}/", "").rstrip(".") for line in output.splitlines() if not _NO_ERROR.search(line)]
    message = "; ".join(lines[:_MOST_ERRORS]) or f"protoc ends with {code}"
    hint = "what it imports must be among the references that it is registered with, by the same name"
    raise Unsupported(f"protoc cannot compile it: {message}", hint if "File not found" in message else "")


def _is_compiled(text: str) -> bool:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        return bool(FileDescriptorProto.FromString(base64.b64decode("".join(text.split()), validate=True)).ByteSize())
    except (ValueError, DecodeError):
        return False


def _lay_out(schema: Schema, folder: Path) -> str:
    """Writes the files of a schema, and returns the name of its main one."""
    files = dict(FILES)
    for name, reference in schema.behind:
        path = PurePosixPath(name)
        if reference.kind != "PROTOBUF":
            raise Unsupported(f"it refers to `{name}`, which is {reference.kind}, not Protobuf")
        if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
            raise Unsupported(f"it refers to `{name}`, which cannot be the name of a file")
        if not name.startswith("google/protobuf/"):  # the compiler's own files fit the library that reads messages
            files[name] = reference.text
    main = "schema.proto"
    while main in files:
        main = f"_{main}"
    for name, text in {**files, main: schema.text}.items():
        place = folder / "files" / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise Unsupported(f"it refers to `{name}`, which cannot be written as a file: {error.strerror}") from None
    return main


def _protoc(*arguments: str) -> tuple[int, str]:
    """Runs the compiler, and returns its exit code and its output, which it writes to the process's stderr."""
    from grpc_tools import protoc

    with _ONE_AT_A_TIME, tempfile.TemporaryFile() as output:
        sys.stderr.flush()
        saved_stderr = os.dup(2)
        try:
            os.dup2(output.fileno(), 2)
            code = protoc.main(list(arguments))
        finally:
            os.dup2(saved_stderr, 2)
            os.close(saved_stderr)
        output.seek(0)
        return code, output.read().decode(errors="replace")
