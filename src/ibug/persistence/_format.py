"""The names and limits of the format: what a reader of this version knows."""

from __future__ import annotations

import re

#: The version that is written and read.
FORMAT_VERSION = 1
FORMAT = "ibug"

MANIFEST = "manifest.json"
CHECKSUM = "manifest.json.sha256"

DEFLATED, STORED = "deflate", "none"

#: A member has one checksum for each block of this many bytes, so that all processors can take part in verifying.
CHUNK_BYTES = 2**24

#: Members have plain relative names: no absolute ones, no drive, no way up, nothing hidden.
MEMBER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*){0,7}")
MAX_MEMBERS = 20_000
MAX_MANIFEST_BYTES = 2**26
#: No honest deflate stream grows by more than this when it is decompressed.
MAX_DEFLATE_RATIO = 1032


class FormatProblemError(Exception):
    """Something in a file is not as it should be; whoever knows the file's name makes a FileFormatError of it."""
