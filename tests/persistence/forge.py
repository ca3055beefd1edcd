"""Files that nobody has saved: taken apart, changed, and put together with right checksums."""

import hashlib
import io
import json
import zipfile

import numpy as np


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


def reforge_skops(data, change):
    """Return a model of skops after `change(members)`: its members by name, schema.json parsed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    members["schema.json"] = json.loads(members["schema.json"])
    change(members)
    members["schema.json"] = json.dumps(members["schema.json"]).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return file.getvalue()


def with_other_model(path, target, change):
    """Write a file whose skops model was changed, with right checksums everywhere."""
    members = take_apart(path)
    manifest = manifest_of(members)
    learned_with = manifest["estimator"]["learned_with"]
    name = manifest["estimator"]["model"]["member"]
    before = hashlib.sha256(members[name]).hexdigest()
    members[name] = reforge_skops(members[name], change)
    learned_with[learned_with.index(before)] = hashlib.sha256(members[name]).hexdigest()
    return put_together(target, members, manifest)


def npy(array):
    """Return an array as a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def arrays_with(members, field):
    """Yield name and a copy of the arrays of records that have a field: the nodes of trees."""
    for name, data in members.items():
        if name.endswith(".npy"):
            array = np.load(io.BytesIO(data))
            if array.dtype.names and field in array.dtype.names and array.size:
                yield name, array.copy()


def nodes_of_schema(value):
    """Yield all dictionaries of a schema."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes_of_schema(item)
