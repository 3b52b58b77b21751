"""Terraform on this machine, with the providers that are on it: tests download none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

PROVIDER = Path("registry.terraform.io/hashicorp/aws/5.100.0")


def mirror() -> Path | None:
    """The folder of this machine that has providers, if it has the one that `infra/aws` names."""
    homes = [
        Path.home() / ".terraform.d" / "plugins",
        *Path("/usr").glob("{local/,}share/terraform/plugins"),
        *Path("/opt").glob("*"),
    ]
    return next((home for home in homes if (home / PROVIDER).is_dir()), None)


def settings(folder: Path) -> dict[str, str]:
    """The environment for Terraform: it takes providers from this machine. Skips the test where there are none."""
    if shutil.which("terraform") is None:
        pytest.skip("Terraform is not on this machine")
    configured = os.environ.get("TF_CLI_CONFIG_FILE", "")
    if configured and Path(configured).is_file():
        return {"TF_CLI_CONFIG_FILE": configured}
    providers = mirror()
    if providers is None:
        pytest.skip(f"the provider {PROVIDER} of Terraform is not on this machine")
    file = folder / "terraform.rc"
    file.write_text(f'provider_installation {{\n  filesystem_mirror {{\n    path = "{providers}"\n  }}\n}}\n')
    return {"TF_CLI_CONFIG_FILE": str(file)}
