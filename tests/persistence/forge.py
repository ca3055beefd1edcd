"""Files that nobody has saved: taken apart, changed, and put together with right checksums."""

import hashlib
import json
import zipfile


def take_apart(path):
    """Return the members of a saved file, decompressed, by name."""
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def put_together(path, members, manifest, *, keep_facts=False):
    """Write a container around a manifest; sizes and checksums are made right unless `keep_facts`."""
    inner = {n: d for n, d in members.items() if not n.startswith("manifest.json")}
    if not keep_facts and isinstance(manifest, dict) and isinstance(manifest.get("members"), dict):
        for name, data in inner.items():
            facts = manifest["members"].get(name)
            if isinstance(facts, dict):
                digest = hashlib.sha256(data).hexdigest()
                facts.update(size=len(data), stored=len(data), compression="none", sha256=[digest])
    text = json.dumps(manifest).encode()
    checksum = f"{hashlib.sha256(text).hexdigest()}  manifest.json\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in inner.items():
            archive.writestr(name, data)
        archive.writestr("manifest.json", text)
        archive.writestr("manifest.json.sha256", checksum)
    return path


def manifest_of(members):
    return json.loads(members["manifest.json"])
