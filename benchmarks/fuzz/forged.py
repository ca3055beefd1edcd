"""Members of a file changed at random, and put together with right checksums."""

import hashlib
import io
import json
import zipfile

import numpy as np

STRANGE = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    10**9,
    2**63,
    -(2**63),
    1e300,
    -1e300,
    0.5,
    "",
    "x",
    "targets",
    "normal",
    [],
    {},
)
STRANGE += ([1], [[]], {"$float": "nan"}, {"$float": "inf"}, {"$array": "x"}, {"$tuple": []}, "nan", "1e999", "9" * 50)
NUMBERS = (0, 1, 2, 3, 7, 8, 9, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**62, -1, -2, -(2**31))
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 5e-324, 1.0, -1.0, 255.0, 256.0)


def take_apart(data):
    """Return the members of a zip file, by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def put_together(members):
    """Return a zip file of members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def with_checksums(members, manifest):
    """Return a file of ibug whose sizes and checksums are right, whatever is in it."""
    inner = {name: data for name, data in members.items() if not name.startswith("manifest.json")}
    for name, data in inner.items():
        facts = manifest["members"].get(name) if isinstance(manifest.get("members"), dict) else None
        if isinstance(facts, dict):
            facts.update(size=len(data), stored=len(data), compression="none", sha256=[digest(data)])
    text = json.dumps(manifest).encode()
    checksum = f"{digest(text)}  manifest.json\n".encode()
    return put_together({**inner, "manifest.json": text, "manifest.json.sha256": checksum})


def digest(data):
    return hashlib.sha256(data).hexdigest()


def places(value, way=()):
    """Yield the way to every value of a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*way, key)
        yield from places(item, (*way, key))


def change_json(document, rng):
    """Replace, remove or exchange one to three values, in place."""
    for _ in range(rng.integers(1, 4)):
        ways = list(places(document))
        *way, last = ways[rng.integers(len(ways))]
        parent = document
        for step in way:
            parent = parent[step]
        what = rng.random()
        if what < 0.1:
            del parent[last]
        elif what < 0.4:
            *other, key = ways[rng.integers(len(ways))]
            source = document
            for step in other:
                source = source[step]
            parent[last] = json.loads(json.dumps(source[key]))
        elif what < 0.6 and isinstance(parent[last], (int, float)) and not isinstance(parent[last], bool):
            parent[last] += int(rng.choice([-1, 1, 7, 1000, -1000]))
        else:
            parent[last] = STRANGE[rng.integers(len(STRANGE))]


def change_array(array, rng):
    """Return an array with some other numbers, or of another type or shape."""
    array = array.copy()
    what = rng.random()
    if what < 0.08 and array.dtype.kind in "biuf":
        return array.astype(rng.choice(["<f4", "<i8", "<u1", "<f8", "<i4", "<u4"]))
    if what < 0.16:
        return array[: rng.integers(0, len(array) + 1)] if array.ndim else array
    if what < 0.2:
        return np.concatenate([array, array[:1]]) if array.ndim and len(array) else array
    if not array.size:
        return array
    fields = [array[name] for name in array.dtype.names] if array.dtype.names else [array]
    field = fields[rng.integers(len(fields))]
    if field.dtype.kind not in "biuf":
        return array
    flat = field.reshape(-1) if field.flags.c_contiguous else field  # a field of records is a view with steps
    for at in rng.integers(0, field.size, rng.integers(1, 6)):
        flat[np.unravel_index(at, flat.shape)] = _number(field.dtype, rng, field.size)
    return array


def _number(dtype, rng, size):
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return np.asarray(FLOATS[rng.integers(len(FLOATS))]).astype(dtype)
    if dtype.kind == "b":
        return bool(rng.integers(2))
    limits = np.iinfo(dtype)
    number = int(rng.integers(0, size + 2)) if rng.random() < 0.4 else NUMBERS[rng.integers(len(NUMBERS))]
    return min(max(number, limits.min), limits.max)


def npy(array):
    """Return an array as a .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def change_skops(data, rng):
    """Return a scikit-learn model with changed arrays, or a changed schema."""
    members = take_apart(data)
    arrays = [name for name in members if name.endswith(".npy")]
    if arrays and rng.random() < 0.6:
        for _ in range(rng.integers(1, 4)):
            name = arrays[rng.integers(len(arrays))]
            members[name] = npy(change_array(np.load(io.BytesIO(members[name])), rng))
    else:
        schema = json.loads(members["schema.json"])
        change_json(schema, rng)
        members["schema.json"] = json.dumps(schema).encode()
    return put_together(members)


def change_file(data, rng):
    """Return a file of ibug with one part changed: the manifest, an array, or a scikit-learn model."""
    members = take_apart(data)
    manifest = json.loads(members["manifest.json"])
    arrays = [name for name in members if name.endswith(".npy")]
    models = [name for name in members if name.endswith(".skops")]
    what = rng.random()
    if models and what < 0.6:
        name = models[rng.integers(len(models))]
        before = digest(members[name])
        members[name] = change_skops(members[name], rng)
        learned = manifest["estimator"]["learned_with"]
        manifest["estimator"]["learned_with"] = [digest(members[name]) if one == before else one for one in learned]
    elif what < 0.8:
        name = arrays[rng.integers(len(arrays))]
        array = change_array(np.load(io.BytesIO(members[name])), rng)
        members[name] = npy(array)
        manifest["members"][name].update(dtype=array.dtype.str, shape=list(array.shape))
    else:
        change_json(manifest["estimator"] if rng.random() < 0.8 else manifest, rng)
    return with_checksums(members, manifest)
