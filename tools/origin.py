"""Where a measurement comes from: device, JAX and commit."""

from __future__ import annotations

import subprocess


def checked_out() -> str | None:
    """The commit that is checked out; None where there is no repository."""
    try:
        found = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def origin(commit: str | None) -> dict[str, str]:
    """Device, version of JAX, and the commit given, or else the one that is checked out."""
    import jax

    name = commit or checked_out()
    if name is None:
        raise SystemExit("there is no repository here to read the commit from: give --commit")
    return {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "commit": name}
