"""The command `sluice`, called in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from framework.host.cli import main


def without(done: Result, *options: str) -> Result:
    """Hints as they are where a command needs no such options."""
    for stream in ("output_bytes", "stdout_bytes", "stderr_bytes") if options else ():
        setattr(done, stream, getattr(done, stream).replace(f" {' '.join(options)}".encode(), b""))
    return done


class Commands:
    """Calls that must end well, or be refused, each with what is always given."""

    always: tuple[str, ...] = ()

    def run(self, *arguments: str, given: bytes | None = None) -> Result:
        done = CliRunner().invoke(main, [*arguments, *self.always], input=given)
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        return without(done, *self.always)

    def ok(self, *arguments: str, given: bytes | None = None) -> str:
        done = self.run(*arguments, given=given)
        assert done.exit_code == 0, done.output
        return done.stdout

    def refused(self, *arguments: str, given: bytes | None = None) -> str:
        done = self.run(*arguments, given=given)
        assert done.exit_code == 1, done.output
        return done.output
