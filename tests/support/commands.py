"""The command `sluice`, called in this process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from click.testing import CliRunner, Result

from framework.host.cli import main

if TYPE_CHECKING:
    from tests.support.project import Project


def without(result: Result, *options: str) -> Result:
    """The result with hints as a command without these options prints them."""
    for stream in ("output_bytes", "stdout_bytes", "stderr_bytes") if options else ():
        setattr(result, stream, getattr(result, stream).replace(f" {' '.join(options)}".encode(), b""))
    return result


class Commands:
    """Calls that must succeed, or be refused, each with the arguments that are always given."""

    always: tuple[str, ...] = ()

    def run(self, *arguments: str, given: bytes | None = None) -> Result:
        result = CliRunner().invoke(main, [*arguments, *self.always], input=given)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        return without(result, *self.always)

    def ok(self, *arguments: str, given: bytes | None = None) -> str:
        result = self.run(*arguments, given=given)
        assert result.exit_code == 0, result.output
        return result.stdout

    def refused(self, *arguments: str, given: bytes | None = None) -> str:
        result = self.run(*arguments, given=given)
        assert result.exit_code == 1, result.output
        return result.output


def sluice(project: Project, *arguments: str) -> Result:
    folder = Path(project.pipeline.where.file).parent
    result = CliRunner().invoke(main, [*arguments, "--specs", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result
