"""Holds $FUNCTION$() of $MODULE$.py against the reference of the bundle, at the sizes of $ID$_sizes.json: python3 test_$ID$.py"""

import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "support")]

import numpy as np  # noqa: E402
import torch  # noqa: E402

import pawl_tensors  # noqa: E402
import $MODULE$ as winner  # noqa: E402

PROBLEM = $PROBLEM$
SEED = 20


class DataFiles:
    """Inputs that are files of the bundle, as pawl_problem asks for them."""

    def get(self, path, count, dtype):
        return np.fromfile(HERE / path, dtype=np.uint8, count=count).view(dtype)


def request_of(size):
    tensors = [dict(spec) for spec in size["tensors"]]
    for spec in tensors:
        if spec.get("fill") == "file":
            spec["data"] = {"offset": f"data/{spec['name']}.bin", "bytes": pawl_tensors.bytes_of(spec)}
    return {"size": size["name"], "sizes": size["sizes"], "seed": SEED, "tensors": tensors}


def filled(request):
    """Storage of every input, by its fill."""
    rng, storages = np.random.default_rng(SEED), {}
    for spec in request["tensors"]:
        if spec["role"] not in ("input", "inout"):
            continue
        if "data" in spec:
            storages[spec["name"]] = DataFiles().get(spec["data"]["offset"], spec["data"]["bytes"], pawl_tensors.STORAGE[spec["type"]])
        else:
            storages[spec["name"]] = pawl_tensors.fill_storage(spec, rng)
    return storages


def on_gpu(storages, request):
    return {spec["name"]: pawl_tensors.tensor_from(torch, storages[spec["name"]].copy(), spec).cuda()
            for spec in request["tensors"] if spec["name"] in storages}  # fmt: skip


def wrong(spec, got, expected):
    """What is wrong with an output, by the tolerance of kernel.toml; "" where nothing is."""
    if spec["exact"]:
        return "" if np.array_equal(got.view(np.uint8), expected.view(np.uint8)) else "not every bit is that of the reference"
    got = pawl_tensors.decode(got, spec).astype(np.float64).reshape(-1)
    expected = pawl_tensors.decode(expected, spec).astype(np.float64).reshape(-1)
    finite = np.isfinite(expected)
    if not np.array_equal(np.isfinite(got), finite):
        return "values that are not finite differ from the reference"
    difference = got[finite] - expected[finite]
    most = float(np.abs(difference).max(initial=0.0))
    norm = float(np.linalg.norm(expected[finite]))
    relative = float(np.linalg.norm(difference)) / norm if norm > 0 else float(np.linalg.norm(difference))
    print(f"{spec['name']}: largest difference {most:.3g} (at most {spec['absolute']:.3g}), relative {relative:.3g} (at most {spec['relative']:.3g})")
    if most > spec["absolute"] or relative > spec["relative"] or math.isnan(most):
        return "the difference is above the tolerance"
    return ""


def run(size):
    request, problem, made = request_of(size), None, None
    outputs = [spec for spec in request["tensors"] if spec["role"] in ("output", "inout")]
    if PROBLEM:
        import pawl_problem

        path = HERE / PROBLEM
        problem = pawl_problem.Problem(str(path), path.read_text(), DataFiles(), file=str(path))
        made = problem.inputs(request)
        storages = problem.input_storages(request, made, False)
    else:
        storages = filled(request)
    results = winner.call(on_gpu(storages, request), size["sizes"])
    torch.cuda.synchronize()
    got = {spec["name"]: pawl_tensors.output_storage(results[spec["name"]], spec, spec["name"]).copy() for spec in outputs}
    if problem is not None:
        expected = problem.expected(request, made, storages, False)
        if problem.has("check"):
            entry = {"inputs": storages, "expected": expected, "specs": {spec["name"]: spec for spec in request["tensors"]},
                     "torch": problem.uses_torch(made)}  # fmt: skip
            return problem.verdict(entry, got)
    else:
        results = winner.call(on_gpu(storages, request), size["sizes"], "reference")
        torch.cuda.synchronize()
        expected = {spec["name"]: pawl_tensors.output_storage(results[spec["name"]], spec, spec["name"]).copy() for spec in outputs}
    for spec in outputs:
        what = wrong(spec, got[spec["name"]], expected[spec["name"]])
        if what:
            return f"{spec['name']}: {what}"
    return ""


def main():
    failed = False
    for size in json.loads((HERE / "$ID$_sizes.json").read_text()):
        what = run(size)
        print(f"$FUNCTION$ at {size['name']}: {'FAILED: ' + what if what else 'as the reference'}")
        failed = failed or bool(what)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
