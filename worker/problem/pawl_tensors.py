"""Tensors of kernel.toml as NumPy arrays: their types as bits, their fills, and what is wrong with given ones.

A tensor is described by a dict as the worker sends it: {"name", "type", "role", "shape", "fill", "low", "high", "data"}.
Its storage is a flat array of the bytes that the GPU gets: bf16 as uint16, fp8 as uint8, 4-bit packed two a byte with the
first in the low half, bool as uint8.
"""

import math
import re

import numpy as np

STORAGE = {
    "f16": "float16", "bf16": "uint16", "f32": "float32", "f64": "float64", "f8e4m3": "uint8", "f8e5m2": "uint8",
    "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32", "i64": "int64",
    "u64": "uint64", "bool": "uint8", "i4": "uint8", "u4": "uint8",
}  # fmt: skip
FLOATS = {"f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"}
PACKED = {"i4": (-8, 7), "u4": (0, 15)}
BITS = {"bf16", "f8e4m3", "f8e5m2"}  # floats that NumPy does not have
# What PyTorch calls them; unsigned types wider than a byte may come as the signed type of the same bits.
TORCH = {
    "f16": ["float16"], "bf16": ["bfloat16"], "f32": ["float32"], "f64": ["float64"], "f8e4m3": ["float8_e4m3fn"],
    "f8e5m2": ["float8_e5m2"], "i8": ["int8"], "u8": ["uint8"], "i16": ["int16"], "u16": ["uint16", "int16"],
    "i32": ["int32"], "u32": ["uint32", "int32"], "i64": ["int64"], "u64": ["uint64", "int64"], "bool": ["bool", "uint8"],
    "i4": ["int8", "uint8"], "u4": ["uint8"],
}  # fmt: skip
NUMPY = {
    **{name: [dtype] for name, dtype in STORAGE.items()},
    "bf16": ["uint16", "float32"], "f8e4m3": ["uint8", "float32"], "f8e5m2": ["uint8", "float32"],
    "bool": ["bool", "uint8"], "i4": ["int8", "uint8"],
}  # fmt: skip
LARGEST = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38, "f64": math.ldexp(1, 500),
           "f8e4m3": 448.0, "f8e5m2": 57344.0}  # fmt: skip
SMALLEST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022, "f8e4m3": 2.0**-6, "f8e5m2": 2.0**-14}
CHUNK = 1 << 22  # elements: temporary arrays stay small


class TensorError(Exception):
    """A tensor is not what kernel.toml says. The message is one line for the bundle's author."""


def elements_of(spec):
    return math.prod(spec["shape"])


def bytes_of(spec):
    if spec["type"] in PACKED:
        return (elements_of(spec) + 1) // 2
    return elements_of(spec) * np.dtype(STORAGE[spec["type"]]).itemsize


def packed_shape(spec):
    """Of a 4-bit tensor given as bytes: the last dimension halved."""
    shape = list(spec["shape"]) or [1]
    return shape[:-1] + [(shape[-1] + 1) // 2]


def is_torch(value):
    return type(value).__module__.split(".")[0] == "torch" and hasattr(value, "data_ptr")


# Types as bits.


def bf16_bits(values):
    """Rounded to the nearest, ties to even. A NaN stays one."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (words + np.uint32(0x7FFF) + ((words >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint32(0x7FC0), rounded).astype(np.uint16)


def bf16_values(bits):
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def fp8_table(kind):
    """The value of each of the 256 codes."""
    exponent_bits, bias = (4, 7) if kind == "f8e4m3" else (5, 15)
    mantissa_bits = 7 - exponent_bits
    codes = np.arange(128)
    exponent, mantissa = codes >> mantissa_bits, codes & ((1 << mantissa_bits) - 1)
    fraction = mantissa / (1 << mantissa_bits)
    values = np.where(exponent > 0, (1 + fraction) * 2.0 ** (exponent - bias), fraction * 2.0 ** (1 - bias))
    if kind == "f8e4m3":
        values[127] = np.nan
    else:
        values[124], values[125:] = np.inf, np.nan
    return np.concatenate([values, -values]).astype(np.float32)


FP8 = {kind: fp8_table(kind) for kind in ("f8e4m3", "f8e5m2")}


def fp8_bits(values, kind):
    """Rounded to the nearest, ties to even, too large ones to the largest, as CUDA converts."""
    table = FP8[kind][:128].astype(np.float64)
    finite = table[np.isfinite(table)]
    magnitude = np.abs(np.asarray(values, dtype=np.float64))
    above = np.minimum(np.searchsorted(finite, magnitude), len(finite) - 1)
    below = np.maximum(above - 1, 0)
    up, down = finite[above] - magnitude, magnitude - finite[below]
    codes = np.where((up < down) | ((up == down) & (above % 2 == 0)) | (magnitude >= finite[-1]), above, below)
    codes = np.where(np.isnan(magnitude), 0x7F, codes).astype(np.uint8)
    return codes | (np.signbit(values).astype(np.uint8) << 7)


def pack4(values):
    flat = np.asarray(values).reshape(-1).astype(np.int16) & 0xF
    if flat.size % 2:
        flat = np.append(flat, 0)
    return (flat[0::2] | (flat[1::2] << 4)).astype(np.uint8)


def unpack4(packed, kind, elements):
    packed = np.asarray(packed, dtype=np.uint8).reshape(-1)
    values = np.empty(2 * packed.size, dtype=np.int8)
    values[0::2], values[1::2] = packed & 0xF, packed >> 4
    if kind == "i4":
        values = (values ^ 8) - 8
    return values[:elements]


def encode(values, kind):
    """Values as storage, flat."""
    values = np.asarray(values).reshape(-1)
    if kind == "bf16":
        convert = bf16_bits
    elif kind in FP8:
        convert = lambda part: fp8_bits(part, kind)  # noqa: E731
    elif kind in PACKED:
        return pack4(values)
    else:
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values.astype(STORAGE[kind], copy=False))
    out = np.empty(values.size, dtype=STORAGE[kind])
    for start in range(0, values.size, CHUNK):
        out[start : start + CHUNK] = convert(values[start : start + CHUNK])
    return out


def decode(storage, spec):
    """Storage as values that NumPy can compute with, in the tensor's shape: bf16 and fp8 as float32, 4-bit as int8."""
    kind = spec["type"]
    if kind == "bf16":
        values = bf16_values(storage)
    elif kind in FP8:
        values = FP8[kind][storage]
    elif kind in PACKED:
        values = unpack4(storage, kind, elements_of(spec))
    elif kind == "bool":
        values = storage.view(np.bool_)
    else:
        values = storage
    return values.reshape(spec["shape"])


def tensor_from(torch, storage, spec):
    """Storage as a PyTorch tensor in main memory; 4-bit as int8 values."""
    kind = spec["type"]
    if kind in PACKED:
        return torch.from_numpy(decode(storage, spec).copy())
    signed = storage.view(f"int{8 * storage.itemsize}") if storage.dtype.kind == "u" and storage.itemsize > 1 else storage
    tensor = torch.from_numpy(signed)
    dtype = getattr(torch, TORCH[kind][0], None) or getattr(torch, TORCH[kind][-1])
    return tensor.view(dtype).reshape(spec["shape"])


# From what a problem returned to storage.


def dtype_name(value):
    return str(value.dtype).split(".")[-1]


def check_shape(value, spec, what):
    shape = [int(extent) for extent in value.shape]
    if shape == list(spec["shape"]) or (spec["type"] in PACKED and dtype_name(value) == "uint8" and shape == packed_shape(spec)):
        return
    raise TensorError(f"{what} has shape {shape}, kernel.toml says {list(spec['shape'])}")


def array_of(value):
    """A NumPy array of the value's bits, of PyTorch types that NumPy has not as unsigned integers."""
    if not is_torch(value):
        return np.ascontiguousarray(value)
    tensor = value.detach().contiguous().cpu()
    name = dtype_name(tensor)
    if name == "bfloat16":
        return tensor.view(_torch().int16).numpy().view(np.uint16)
    if name.startswith("float8"):
        return tensor.view(_torch().uint8).numpy()
    if name in ("uint16", "uint32", "uint64"):
        return tensor.view(getattr(_torch(), name[1:])).numpy().view(name)
    return tensor.numpy()


def _torch():
    import torch

    return torch


def check_is_tensor(value, what):
    if not is_torch(value) and not isinstance(value, np.ndarray):
        raise TensorError(f"{what} is a {type(value).__name__}, not a PyTorch tensor or NumPy array")


def input_storage(value, spec, what):
    """Of an input, whose type must be exactly the tensor's."""
    check_is_tensor(value, what)
    kind, name = spec["type"], dtype_name(value)
    allowed = TORCH[kind] if is_torch(value) else NUMPY[kind]
    if name not in allowed:
        library = "torch" if is_torch(value) else "numpy"
        raise TensorError(f"{what} has type {name}, kernel.toml says {kind}: return {library}.{' or '.join(allowed)}")
    check_shape(value, spec, what)
    array = array_of(value).reshape(-1)
    if kind in PACKED:
        if array.size == elements_of(spec) and list(value.shape) == list(spec["shape"]):
            check_range(array, *PACKED[kind], what, kind)
            return pack4(array)
        return array
    if kind in BITS and array.dtype.kind == "f":
        return encode(array, kind)
    return array.view(STORAGE[kind])


def output_storage(value, spec, what):
    """Of an output: a float of any width is rounded to the tensor's type, an integer must fit into it."""
    check_is_tensor(value, what)
    kind, name = spec["type"], dtype_name(value)
    check_shape(value, spec, what)
    exact = TORCH[kind] if is_torch(value) else NUMPY[kind]
    if name in exact:
        return input_storage(value, spec, what)
    if kind in FLOATS and (name.startswith("float") or name == "bfloat16"):
        if is_torch(value):
            value = value.double() if name == "float64" else value.float()
        return encode(array_of(value), kind)
    if kind not in FLOATS and (name.startswith("int") or name.startswith("uint")):
        array = array_of(value)
        low, high = limits_of(kind)
        check_range(array, low, high, what, kind)
        return encode(array, kind)
    raise TensorError(f"{what} has type {name}, kernel.toml says {kind}")


def limits_of(kind):
    if kind in PACKED:
        return PACKED[kind]
    if kind == "bool":
        return 0, 1
    info = np.iinfo(STORAGE[kind])
    return int(info.min), int(info.max)


# What is wrong with the values.


def index_text(flat, shape):
    index = np.unravel_index(int(flat), tuple(shape) or (1,))
    return "[" + ",".join(str(int(i)) for i in index) + "]"


def is_nan(storage, kind):
    if kind in ("f16", "bf16"):
        return (storage.view(np.uint16) & np.uint16(0x7FFF)) > np.uint16(0x7C00 if kind == "f16" else 0x7F80)
    if kind in FP8:
        return np.isnan(FP8[kind])[storage]
    return np.isnan(storage)


def no_numbers(spec):
    """Of a float output NaN everywhere, of any other zeros."""
    return encode(np.full(elements_of(spec), np.nan if spec["type"] in FLOATS else 0), spec["type"])


def first_nan(storage, kind):
    """Flat index of the first NaN, or None."""
    if kind not in FLOATS:
        return None
    for start in range(0, storage.size, CHUNK):
        part = storage[start : start + CHUNK]
        if kind in ("f32", "f64") and not np.isnan(part.min()):  # a NaN anywhere is the least
            continue
        found = is_nan(part, kind)
        if found.any():
            return start + int(np.argmax(found))
    return None


def number(value):
    return int(value) if isinstance(value, (np.integer, int)) or float(value).is_integer() else float(value)


def check_range(values, low, high, what, stated):
    flat = values.reshape(-1)
    if flat.size == 0:
        return
    least, most = flat.min(), flat.max()
    if (low is None or least >= low) and (high is None or most <= high):
        return
    bad = np.argmax((flat < low) if low is not None and least < low else (flat > high))
    raise TensorError(f"{what}{index_text(bad, values.shape)} is {number(flat[bad])}, outside of {stated} [{low}, {high}]")


def check_rising(flat, what, because):
    falls = np.flatnonzero(flat[1:] < flat[:-1])
    if falls.size:
        at = int(falls[0])
        raise TensorError(f"{what} falls from {number(flat[at])} to {number(flat[at + 1])} at [{at + 1}]: {because}")


def check_values(storage, spec, what):
    """What inputs() returned against the fill and the range that kernel.toml states for the tensor."""
    kind, fill = spec["type"], spec.get("fill", "problem")
    nan = first_nan(storage, kind)
    if nan is not None:
        raise TensorError(f"{what}{index_text(nan, spec['shape'])} is NaN")
    low, high = spec.get("low"), spec.get("high")
    values = decode(storage, spec)
    if kind == "bool" and storage.size and storage.max() > 1:
        raise TensorError(f"{what} has the byte {int(storage.max())}: a bool is 0 or 1")
    flat = values.reshape(-1)
    if kind not in FLOATS:
        low, high = (None if low is None else int(low)), (None if high is None else int(high))
    if fill == "csr_offsets":
        check_rising(flat, what, "CSR offsets must not fall")
        ends = [(0, 0, "start"), (-1, high, "end")] if flat.size else []
        for at, expected, word in ends:
            if expected is not None and int(flat[at]) != int(expected):
                raise TensorError(f"{what} {word}s with {int(flat[at])}: CSR offsets must {word} with {int(expected)}")
        return
    if fill == "permutation":
        if not np.array_equal(np.sort(flat), np.arange(flat.size)):
            raise TensorError(f"{what} is not a permutation of 0 to {flat.size - 1}")
        return
    if fill == "sorted":
        check_rising(flat, what, "kernel.toml says that it is sorted")
    constant = {"zeros": 0, "ones": 1, "constant": low}.get(fill)
    if constant is not None or fill == "iota":
        expected = np.arange(flat.size) if fill == "iota" else constant
        wrong = np.flatnonzero(flat != expected)
        if wrong.size:
            raise TensorError(f"{what}{index_text(wrong[0], values.shape)} is {number(flat[wrong[0]])}: kernel.toml says fill = {fill}")
        return
    if low is not None or high is not None:
        check_range(values, low, high, what, "the range of kernel.toml,")


# Fills, for tensors that inputs() does not return.


def range_of(spec, distribution, magnitude):
    """As the runner takes it: a stated range holds for every distribution, the fill's own included."""
    kind, uniform = spec["type"], spec.get("fill") == "uniform"
    low, high = spec.get("low"), spec.get("high")
    own = not distribution
    if low is not None and high is not None:
        if own and uniform and kind in FLOATS and low < 1 and high > 0:
            return max(low, 0.0), min(high, 1.0)
        return low, high
    if kind not in FLOATS:
        least, most = limits_of(kind)
        return max(least, 0), min(most, 1023)
    if own or not magnitude:
        return (0.0, 1.0) if uniform else (-4.0, 4.0)
    most = min(magnitude, LARGEST[kind])
    return -most, most


def fill_storage(spec, rng, distribution="", magnitude=0.0):
    """A tensor made by its fill, or by one of the other distributions of validation where it has a random fill."""
    kind, fill, count = spec["type"], spec.get("fill", "normal"), elements_of(spec)
    structured = structured_fill(spec, rng)
    if structured is not None:
        return encode(structured, kind)
    if fill == "bytes":
        return np.frombuffer(rng.bytes(bytes_of(spec)), dtype=STORAGE[kind]).copy()
    if kind == "bool":
        return rng.integers(0, 2, count, dtype=np.uint8)
    low, high = range_of(spec, distribution, magnitude)
    if kind not in FLOATS:
        return encode(draw_integers(int(low), int(high), count, rng, distribution), kind)
    return encode(draw_floats(spec, low, high, count, rng, distribution), kind)


def structured_fill(spec, rng):
    """Of fills that no distribution changes; None for the others."""
    fill, count = spec.get("fill"), elements_of(spec)
    low, high = spec.get("low"), spec.get("high")
    if fill in ("zeros", "ones", "constant"):
        return np.full(count, {"zeros": 0, "ones": 1, "constant": low}[fill])
    if fill == "iota":
        return np.arange(count)
    if fill == "permutation":
        return rng.permutation(count)
    if fill == "csr_offsets":
        if count < 2:
            return np.zeros(count, dtype=np.int64)
        return np.concatenate([[0], np.sort(rng.integers(0, int(high) + 1, count - 2)), [int(high)]])
    if fill == "sorted":
        low, high = range_of(spec, "", 0)
        drawn = rng.uniform(low, high, count) if spec["type"] in FLOATS else rng.integers(int(low), int(high) + 1, count)
        return np.sort(drawn)
    return None


def draw_integers(low, high, count, rng, distribution):
    if distribution == "EQUAL":
        return np.full(count, rng.integers(low, high, endpoint=True))
    if distribution == "SORTED":
        return low + (np.arange(count) * (high - low + 1)) // max(1, count)
    if distribution == "ZEROS":
        return np.full(count, max(low, min(high, 0)))
    if distribution == "EXTREMES":
        return rng.choice(np.array([low, high, max(low, min(high, 0))]), count)
    if distribution == "LARGE":
        low = high - (high - low) // 4
    if high > 2**63 - 1:
        return rng.integers(low, high, count, endpoint=True, dtype=np.uint64)
    return rng.integers(low, high, count, endpoint=True)


def draw_floats(spec, low, high, count, rng, distribution):
    kind = spec["type"]
    middle, half = 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    sign = lambda: np.where(rng.random(count) < 0.5, -1.0, 1.0)  # noqa: E731
    if not distribution:
        dtype = np.float32 if kind != "f64" else np.float64
        if spec.get("fill") in ("uniform", "uniform_range"):
            values = low + 2 * half * rng.random(count, dtype=dtype)
        else:
            values = rng.standard_normal(count, dtype=dtype)
    elif distribution == "WIDE_NORMAL":
        values = middle + half / 3 * rng.standard_normal(count)
    elif distribution == "HEAVY_TAILS":
        values = middle + half * sign() * np.exp2(-20 * rng.random(count))
        if rng.random() < 0.5:  # as in most inputs, but for a few
            rare = rng.random(count) < 2.0 ** -rng.integers(3, 17)
            if count:
                rare[rng.integers(count)] = True
            far = middle + half * sign() * (1 - 0.25 * rng.random(count))
            values = np.where(rare, far, draw_floats(spec, *range_of(spec, "", 0), count, rng, ""))
    elif distribution == "LARGE":
        values = middle + half * sign() * (1 - 0.25 * rng.random(count))
    elif distribution == "EQUAL":
        values = np.full(count, low + 2 * half * rng.random())
    elif distribution == "SORTED":
        values = low + 2 * half * ((np.arange(count) + rng.random(count)) / max(1, count))
    elif distribution == "ZEROS":
        values = np.zeros(count)
    elif distribution == "DENORMAL":
        values = SMALLEST_NORMAL[kind] * rng.random(count) * (sign() if low < 0 < high else 1 if high > 0 else -1)
    elif distribution == "EXTREMES":
        values = rng.choice(np.array([low, high, 0.0]), count)
    elif distribution == "STRIPED":
        run, first = rng.integers(0, 8), rng.integers(0, 2)
        stripes = (np.arange(count) >> run) & 1
        values = (low + 2 * half * rng.random(count)) * np.where(stripes == first, 1, 1 / 64)
    else:
        raise ValueError(f"unknown distribution {distribution}")
    return np.clip(values, low, high)


def one_line(text):
    return re.sub(r"\s+", " ", str(text)).strip()
