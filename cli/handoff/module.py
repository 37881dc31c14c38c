"""$TITLE$

$FUNCTION$() takes CUDA tensors by the names of kernel.toml and returns its outputs by name. The extension is built at the
first call; what is compiled for values of dimensions, at the first call with each. Written by Pawl.
"""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sysconfig

import torch
from torch.utils import cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
NAME = "$ID$"
SPACE = "$SPACE$"  # the same; of each variant of a portfolio another
# Parts: the kernel, what it needs before each call, the reference. Sources, options of nvcc, and the dimensions whose
# values are compiled into the code (SIZE_* macros).
PARTS = $PARTS$
LIBRARY = $LIBRARY$  # a cubin or PTX file with the kernels
# Names, types, roles and alignment of the tensors, in the order of the launches' code.
TENSORS = $TENSORS$
SIZES = $SIZES$
# Where a size can be read off: tensors and their axes.
AXES = $AXES$

# Unsigned types wider than a byte may come as the signed type of the same bits.
TYPES = {
    "f16": ["float16"], "bf16": ["bfloat16"], "f32": ["float32"], "f64": ["float64"], "f8e4m3": ["float8_e4m3fn"],
    "f8e5m2": ["float8_e5m2"], "i8": ["int8"], "u8": ["uint8"], "i16": ["int16"], "u16": ["uint16", "int16"],
    "i32": ["int32"], "u32": ["uint32", "int32"], "i64": ["int64"], "u64": ["uint64", "int64"], "bool": ["bool", "uint8"],
    "i4": ["uint8", "int8"], "u4": ["uint8", "int8"],
}  # fmt: skip
# torch.utils.cpp_extension switches these off; the kernel was measured with them.
HALVES = [f"-U__CUDA_NO_{name}__" for name in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS", "BFLOAT16_OPERATORS", "BFLOAT162_OPERATORS")]
_loaded = {}


def load(part, sizes=()):
    """The extension of a part for these values of SIZES, built into build/ where it is not there yet."""
    settings = PARTS[part]
    fixed = {size: value for size, value in zip(SIZES, sizes) if size in settings["fixed"]}
    name = "_".join([SPACE, part, *(f"{size}{value}" for size, value in fixed.items())])
    if name in _loaded:
        return _loaded[name]
    folder = HERE / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    defines = [f"-DLAUNCH={settings['launch']}", f"-D{NAME.upper()}_WITHOUT_MAIN", *(f"-DSIZE_{size}={value}" for size, value in fixed.items())]
    sources = [str(HERE / source) for source in settings["sources"]]
    options = [option.replace("{HERE}", str(HERE)) for option in settings["options"]]
    headers = pathlib.Path(sysconfig.get_paths()["include"]) / "Python.h"
    if cpp_extension.is_ninja_available() and headers.exists():
        module = cpp_extension.load(name=name, sources=sources, extra_cflags=["-O1", "-std=c++17", *defines],
                                    extra_cuda_cflags=[*HALVES, *options, *defines],
                                    extra_include_paths=[str(HERE)], build_directory=str(folder), with_cuda=True)  # fmt: skip
    else:
        module = build_plain(name, folder, sources, [*options, *defines])
    if part == "kernel" and LIBRARY:
        module.open_library(str(HERE / LIBRARY))
    _loaded[name] = module
    return module


class Plain:
    """The same functions from a shared library, which needs neither ninja nor Python's headers to be built."""

    def __init__(self, library):
        self.functions = ctypes.CDLL(str(library))

    def _call(self, function, *arguments):
        error = ctypes.create_string_buffer(1000)
        if function(*arguments, error, ctypes.c_size_t(len(error))) != 0:
            raise RuntimeError(error.value.decode(errors="replace"))

    @staticmethod
    def _sizes(sizes):
        return (ctypes.c_int32 * len(sizes))(*sizes), ctypes.c_size_t(len(sizes))

    def launch(self, sizes, addresses, stream):
        given = (ctypes.c_size_t * len(addresses))(*addresses)
        self._call(self.functions.pawl_launch, *self._sizes(sizes), given, ctypes.c_size_t(len(addresses)), ctypes.c_size_t(stream))
        return list(given)

    def shape_of(self, tensor, sizes):
        shape = (ctypes.c_int64 * 8)()
        self._call(self.functions.pawl_shape_of, ctypes.c_int(tensor), *self._sizes(sizes), shape)
        return [extent for extent in shape if extent > 0]

    def open_library(self, file):
        self._call(self.functions.pawl_open_library, file.encode())


def build_plain(name, folder, sources, options):
    nvcc = shutil.which("nvcc") or os.path.join(cpp_extension.CUDA_HOME or "/usr/local/cuda", "bin", "nvcc")
    library = folder / f"{name}_plain.so"
    command = [nvcc, "-shared", "-O1", "-Xcompiler", "-fPIC", "-DPLAIN_C", *options, f"-I{HERE}", *sources, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return Plain(library)


def packed(kind):
    return kind in ("i4", "u4")


def sizes_of(tensors, sizes):
    """Every size, from the shapes of the inputs and from what was given by name."""
    found = dict(sizes)
    for size, places in AXES.items():
        for name, axis in places:
            extent = tensors[name].shape[axis] if axis < tensors[name].dim() else None
            if extent is not None and found.setdefault(size, int(extent)) != int(extent):
                raise ValueError(f"{size} is {found[size]} and, by the shape of {name}, {int(extent)}")
    missing = [size for size in SIZES if found.get(size) is None]
    if missing:
        raise TypeError(f"no shape tells {', '.join(missing)}: pass it by name")
    return [int(found[size]) for size in SIZES]


def checked(value, name, kind, shape):
    """The tensor as the kernel wants it: type, shape, contiguous; 4-bit values are packed two a byte."""
    if not isinstance(value, torch.Tensor) or not value.is_cuda:
        raise TypeError(f"{name} must be a CUDA tensor")
    if str(value.dtype).split(".")[-1] not in TYPES[kind]:
        raise TypeError(f"{name} has type {value.dtype}, expected torch.{' or '.join(TYPES[kind])}")
    if packed(kind) and list(value.shape) == shape:
        halves = value.to(torch.uint8) & 15
        return (halves[..., 0::2] | (halves[..., 1::2] << 4)).contiguous()
    expected = shape[:-1] + [shape[-1] // 2] if packed(kind) else shape
    if list(value.shape) != expected:
        raise ValueError(f"{name} has shape {list(value.shape)}, expected {expected}")
    return value.contiguous()


def allocated(kind, shape, align, device):
    dtype = getattr(torch, TYPES[kind][0], None) or getattr(torch, TYPES[kind][-1])
    shape = shape[:-1] + [shape[-1] // 2] if packed(kind) else shape
    if align <= 256:
        return torch.empty(shape, dtype=dtype, device=device)
    count = 1
    for extent in shape:
        count *= extent
    room = torch.empty(count * torch.empty((), dtype=dtype).element_size() + align, dtype=torch.uint8, device=device)
    skip = -room.data_ptr() % align
    return room[skip : room.numel() - align + skip].view(dtype).view(shape)


def call(tensors, sizes, part="kernel"):
    """Runs a part on the current stream and answers its outputs by name. Tensors that are changed in place are."""
    values = sizes_of(tensors, sizes)
    shape_of = load("kernel", values).shape_of
    device = next((tensor.device for tensor in tensors.values() if tensor.is_cuda), torch.device("cuda"))
    with torch.cuda.device(device):
        buffers = []
        for number, (name, kind, role, align) in enumerate(TENSORS):
            shape = list(shape_of(number, values))
            given = role in ("input", "inout")
            buffers.append(checked(tensors[name], name, kind, shape) if given else allocated(kind, shape, align, device))
            if given and align > 1 and buffers[-1].data_ptr() % align:
                raise ValueError(f"{name} must begin at a multiple of {align} bytes")
        stream = torch.cuda.current_stream().cuda_stream
        addresses = [buffer.data_ptr() for buffer in buffers]
        if part == "kernel" and "setup" in PARTS:
            load("setup", values).launch(values, addresses, stream)
        after = load(part, values).launch(values, addresses, stream)
        # Launches may have exchanged buffers.
        by_address = dict(zip(addresses, buffers))
        results = {name: by_address[address] for (name, _, role, _), address in zip(TENSORS, after) if role in ("output", "inout")}
        moved = {name: results[name].clone() for name, _, role, _ in TENSORS
                 if role == "inout" and results[name].data_ptr() != tensors[name].data_ptr()}  # fmt: skip
        for name, value in moved.items():
            if tensors[name].shape == value.shape:
                results[name] = tensors[name].copy_(value.view(tensors[name].dtype))
            else:
                results[name] = value  # 4-bit values that were given unpacked
    return results


$DEFINITION$