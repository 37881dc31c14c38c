"""A stand-in for PyTorch over NumPy, with as much of it as the hand-off of `pawl best` uses. Its GPU is main memory."""

import contextlib

import numpy as np

_storage = {}
by_address = {}  # arrays that kernels were given


class dtype:
    def __init__(self, name, storage):
        self.name, self.storage = name, np.dtype(storage)

    def __repr__(self):
        return f"torch.{self.name}"


for _name, _numpy in {
    "float16": "float16", "bfloat16": "int16", "float32": "float32", "float64": "float64", "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8", "int8": "int8", "uint8": "uint8", "int16": "int16", "int32": "int32", "int64": "int64", "bool": "bool",
}.items():  # fmt: skip
    globals()[_name] = _storage[_name] = dtype(_name, _numpy)


class Tensor:
    is_cuda = True
    device = "cuda"

    def __init__(self, array, kind):
        self.array, self.dtype = array, kind

    shape = property(lambda self: self.array.shape)

    def data_ptr(self):
        by_address[self.array.ctypes.data] = self.array
        return self.array.ctypes.data

    def view(self, *to):
        if isinstance(to[0], dtype):
            return Tensor(self.array.view(to[0].storage), to[0])
        return self.reshape(*to)

    def reshape(self, *shape):
        return Tensor(self.array.reshape(shape[0] if isinstance(shape[0], (list, tuple)) else shape), self.dtype)

    def copy_(self, other):
        self.array[...] = other.array
        return self

    def to(self, kind):
        return Tensor(self.array.astype(kind.storage), kind)

    def __getitem__(self, key):
        return Tensor(self.array[key], self.dtype)

    def __and__(self, other):
        return Tensor(self.array & other, self.dtype)

    def __lshift__(self, other):
        return Tensor(self.array << other, self.dtype)

    def __or__(self, other):
        return Tensor(self.array | other.array, self.dtype)

    def dim(self):
        return self.array.ndim

    def numel(self):
        return self.array.size

    def element_size(self):
        return self.array.itemsize

    def contiguous(self):
        return self if self.array.flags.c_contiguous else Tensor(self.array.copy(), self.dtype)

    def clone(self):
        return Tensor(self.array.copy(), self.dtype)

    def numpy(self):
        return self.array

    def cuda(self):
        return self

    cpu = detach = cuda


def from_numpy(array):
    return Tensor(array, next(kind for kind in _storage.values() if kind.storage == array.dtype and kind.name != "bfloat16"))


def empty(shape, dtype=None, device=None):
    return Tensor(np.full(shape, 1, dtype=dtype.storage), dtype)


def device(name):
    return name


def manual_seed(seed):
    pass


inference_mode = contextlib.nullcontext


class cuda:
    is_available = is_initialized = staticmethod(lambda: True)
    synchronize = staticmethod(lambda: None)
    device = staticmethod(lambda where: contextlib.nullcontext())

    class current_stream:
        cuda_stream = 0
