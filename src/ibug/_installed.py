"""How ibug is installed: the distribution's name, its version, and another distribution that is in its way."""

from __future__ import annotations

import warnings
from importlib.metadata import PackageNotFoundError, version

from ibug.exceptions import NameConflictWarning

#: What pip installs. On PyPI `ibug` is the package of the paper's authors.
DISTRIBUTION = "ibug-learn"
VERSION = version(DISTRIBUTION)

_NAMESAKE = "ibug"


def how_to_install(extra: str) -> str:
    """Return the commands that install ibug with an extra, from an index and from a clone of the source."""
    return f'pip install "{DISTRIBUTION}[{extra}]", or pip install ".[{extra}]" in a clone of the source'


def warn_of_namesake() -> None:
    """Warn if the authors' distribution is installed, too: its modules are in the same folder as ours."""
    try:
        other = version(_NAMESAKE)  # looks into folders that were listed for our own version: microseconds
    except PackageNotFoundError:
        return
    warnings.warn(
        f"Two distributions have installed a package named ibug: {DISTRIBUTION} {VERSION}, which is imported here, and "
        f"{_NAMESAKE} {other}, another project. Each overwrites files of the other, so neither can be relied on. To "
        f"keep this one: pip uninstall -y {_NAMESAKE} {DISTRIBUTION}, then pip install {DISTRIBUTION}. To use both, "
        "install them into two environments.",
        NameConflictWarning,
        stacklevel=3,  # the line that imports ibug
    )
