"""Extensions whose kernels set every output to 0; FAKE_KERNEL=wrong has the kernel, not the reference, set them to 2."""

import json
import os
import pathlib
import sys

import torch


CUDA_HOME = None


def is_ninja_available():
    return os.environ.get("FAKE_NINJA") != "missing"


class Extension:
    def __init__(self, name, sources, **options):
        self.reference = name.endswith("_reference")
        self.sources = [pathlib.Path(source) for source in sources]
        assert all(source.exists() for source in self.sources)
        assert all("{HERE}" not in option for option in options["extra_cuda_cflags"])
        folder = self.sources[0].parent
        self.sizes = json.loads(next(folder.glob("*_sizes.json")).read_text())
        self.module = next(module for path, module in sys.modules.items() if path.endswith("_winner"))

    def shape_of(self, number, values):
        given = dict(zip(self.module.SIZES, values))
        name = self.module.TENSORS[number][0]
        for size in self.sizes:
            for tensor in size["tensors"]:
                if size["sizes"] == given and tensor["name"] == name:
                    return tensor["shape"]
        return [4]  # scratch

    def launch(self, values, addresses, stream):
        wrong = os.environ.get("FAKE_KERNEL") == "wrong" and not self.reference
        for (name, kind, role, align), address in zip(self.module.TENSORS, addresses):
            if role in ("output", "inout"):
                torch.by_address[address][...] = 2 if wrong else 0
        return addresses

    def open_library(self, file):
        assert pathlib.Path(file).exists()


def load(name, sources, **options):
    return Extension(name, sources, **options)
