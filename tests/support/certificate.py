"""A certificate that nobody has signed, for servers of this machine."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certified(folder: Path) -> tuple[Path, Path]:
    """The certificate, which also says whom to trust, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=front", "-addext",
         "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key
