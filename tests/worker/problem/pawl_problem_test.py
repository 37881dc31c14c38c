"""pawl_tensors.py and pawl_problem.py with NumPy, without PyTorch and without a GPU."""
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

root = pathlib.Path(sys.argv.pop(1))
sys.path[:0] = [str(root / "worker/problem"), str(root / "worker/device")]
import pawl_problem  # noqa: E402
import pawl_tensors  # noqa: E402


def spec(name, shape, type="f32", role="input", **more):
    return {"name": name, "type": type, "role": role, "shape": shape, **more}


class Bits(unittest.TestCase):
    def test_bf16_keeps_every_value_that_it_has(self):
        bits = np.arange(65536, dtype=np.uint16)
        values = pawl_tensors.bf16_values(bits)
        finite = ~np.isnan(values)
        np.testing.assert_array_equal(pawl_tensors.bf16_bits(values[finite]), bits[finite])

    def test_bf16_rounds_ties_to_even(self):
        between = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nan], dtype=np.float32)
        self.assertEqual(pawl_tensors.bf16_bits(between).tolist(), [0x3F80, 0x3F82, 0x7FC0])

    def test_fp8_keeps_every_value_that_it_has(self):
        for kind in ("f8e4m3", "f8e5m2"):
            codes = np.arange(256, dtype=np.uint8)
            values = pawl_tensors.FP8[kind]
            finite = np.isfinite(values)
            np.testing.assert_array_equal(pawl_tensors.fp8_bits(values[finite], kind), codes[finite])

    def test_fp8_rounds_ties_to_even_and_stays_finite(self):
        self.assertEqual(pawl_tensors.fp8_bits(np.array([17.0, 19.0, 1e9, -1e9, np.nan]), "f8e4m3").tolist(), [0x58, 0x5A, 0x7E, 0xFE, 0x7F])
        self.assertEqual(pawl_tensors.fp8_bits(np.array([1e9, 2.0**-17]), "f8e5m2").tolist(), [0x7B, 0])

    def test_four_bits_are_packed_with_the_first_in_the_low_half(self):
        self.assertEqual(pawl_tensors.pack4(np.array([1, 2, -1])).tolist(), [0x21, 0x0F])
        self.assertEqual(pawl_tensors.unpack4(np.array([0x8F, 0x07], np.uint8), "i4", 3).tolist(), [-1, -8, 7])
        self.assertEqual(pawl_tensors.unpack4(np.array([0x8F], np.uint8), "u4", 2).tolist(), [15, 8])


class Storage(unittest.TestCase):
    def refused(self, function, value, kind, expected):
        with self.assertRaisesRegex(pawl_tensors.TensorError, expected):
            function(value, kind, "x")

    def test_inputs_must_have_exactly_the_type(self):
        take = pawl_tensors.input_storage
        self.assertEqual(take(np.float32([1, 2]), spec("x", [2]), "x").tolist(), [1, 2])
        self.refused(take, np.float64([1, 2]), spec("x", [2]), r"x has type float64, kernel.toml says f32: return numpy.float32")
        self.refused(take, np.int64([1]), spec("x", [1], "i32"), "type int64, kernel.toml says i32")
        self.refused(take, np.float32([1]), spec("x", [2]), r"x has shape \[1\], kernel.toml says \[2\]")
        self.refused(take, [1, 2], spec("x", [2]), "x is a list")

    def test_types_that_numpy_lacks_come_as_bits_or_as_floats(self):
        take = pawl_tensors.input_storage
        self.assertEqual(take(np.uint16([0x3F80]), spec("x", [1], "bf16"), "x").tolist(), [0x3F80])
        self.assertEqual(take(np.float32([1]), spec("x", [1], "bf16"), "x").tolist(), [0x3F80])
        self.assertEqual(take(np.float32([1]), spec("x", [1], "f8e4m3"), "x").tolist(), [0x38])
        self.assertEqual(take(np.uint8([0x38]), spec("x", [1], "f8e4m3"), "x").tolist(), [0x38])

    def test_four_bits_come_one_a_byte_or_packed(self):
        take = pawl_tensors.input_storage
        self.assertEqual(take(np.int8([[1, -1], [2, 3]]), spec("x", [2, 2], "i4"), "x").tolist(), [0xF1, 0x32])
        self.assertEqual(take(np.uint8([[0xF1], [0x32]]), spec("x", [2, 2], "i4"), "x").tolist(), [0xF1, 0x32])
        self.refused(take, np.int8([8, 0]), spec("x", [2], "i4"), r"x\[0\] is 8, outside of i4 \[-8, 7\]")

    def test_outputs_are_rounded_to_the_type(self):
        take = pawl_tensors.output_storage
        self.assertEqual(take(np.float64([1 / 3]), spec("x", [1], "f16"), "x").dtype, np.float16)
        self.assertEqual(take(np.float64([1]), spec("x", [1], "bf16"), "x").tolist(), [0x3F80])
        self.assertEqual(take(np.int64([5]), spec("x", [1], "i32"), "x").dtype, np.int32)
        self.refused(take, np.int64([2**40]), spec("x", [1], "i32"), "outside of i32")
        self.refused(take, np.float32([1]), spec("x", [1], "i32"), "type float32, kernel.toml says i32")


class Values(unittest.TestCase):
    def refused(self, values, kind, expected, **more):
        given = spec("x", [len(values)], kind, **more)
        with self.assertRaisesRegex(pawl_tensors.TensorError, expected):
            pawl_tensors.check_values(pawl_tensors.encode(np.array(values), kind), given, "x")

    def test_what_breaks_the_stated_fill_is_named(self):
        self.refused([0, 3, 2, 4], "i32", r"x falls from 3 to 2 at \[2\]: CSR offsets must not fall", fill="csr_offsets", high=4)
        self.refused([1, 3, 4], "i32", "x starts with 1: CSR offsets must start with 0", fill="csr_offsets", high=4)
        self.refused([0, 3], "i32", "x ends with 3: CSR offsets must end with 4", fill="csr_offsets", high=4)
        self.refused([0, 9], "i64", r"x\[1\] is 9, outside of the range of kernel.toml, \[0, 8\]", fill="integers", low=0, high=8)
        self.refused([0, 0], "i32", "x is not a permutation of 0 to 1", fill="permutation")
        self.refused([2, 1], "f32", "kernel.toml says that it is sorted", fill="sorted")
        self.refused([0, 1], "f32", r"x\[1\] is 1: kernel.toml says fill = zeros", fill="zeros")

    def test_nan_is_found_in_every_float_type(self):
        for kind in sorted(pawl_tensors.FLOATS):
            self.refused([0, float("nan")], kind, r"x\[1\] is NaN")

    def test_infinity_is_data(self):
        pawl_tensors.check_values(np.float32([-np.inf]), spec("mask", [1]), "mask")


class Fills(unittest.TestCase):
    def test_every_fill_keeps_what_it_promises(self):
        rng = np.random.default_rng(1)
        for kind, more in [
            ("f32", {"fill": "normal"}), ("bf16", {"fill": "uniform", "low": -2, "high": 2}), ("f8e4m3", {"fill": "normal"}),
            ("i64", {"fill": "integers", "low": 5, "high": 9}), ("u4", {"fill": "integers", "low": 0, "high": 15}),
            ("i32", {"fill": "csr_offsets", "high": 100}), ("i32", {"fill": "permutation"}), ("f32", {"fill": "sorted"}),
            ("u16", {"fill": "iota"}), ("f16", {"fill": "constant", "low": 0.5}), ("bool", {"fill": "integers"}),
        ]:  # fmt: skip
            made = spec("x", [64], kind, **more)
            storage = pawl_tensors.fill_storage(made, rng)
            self.assertEqual(storage.nbytes, pawl_tensors.bytes_of(made), kind)
            pawl_tensors.check_values(storage, made, "x")

    def test_distributions_stay_in_the_range(self):
        rng = np.random.default_rng(1)
        for name in ("WIDE_NORMAL", "HEAVY_TAILS", "LARGE", "EQUAL", "SORTED", "ZEROS", "DENORMAL", "EXTREMES", "STRIPED"):
            floats = spec("x", [1000], "f32", fill="normal", low=-3, high=5)
            pawl_tensors.check_values(pawl_tensors.fill_storage(floats, rng, name, 0), floats, name)
            integers = spec("x", [1000], "i32", fill="integers", low=-3, high=5)
            pawl_tensors.check_values(pawl_tensors.fill_storage(integers, rng, name, 0), integers, name)
        equal = pawl_tensors.fill_storage(spec("x", [100]), rng, "EQUAL", 8)
        self.assertEqual(len(set(equal.tolist())), 1)


AXPY = """
import numpy as np


def inputs(sizes, seed):
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal(sizes["N"], dtype=np.float32)}


def reference(x, y):
    return {"y": y + 2 * x}
"""


class Problems(unittest.TestCase):
    TENSORS = [spec("x", [8]), spec("y", [8], role="inout", fill="uniform"), spec("tmp", [3], role="scratch")]

    def setUp(self):
        self.file = tempfile.TemporaryFile()
        self.addCleanup(self.file.close)
        self.memory = pawl_problem.SharedMemory(self.file.fileno())

    def problem(self, source=AXPY):
        return pawl_problem.Problem("problem.py", source, self.memory)

    def request(self, **more):
        return {"do": "make", "pool": "p", "entry": 0, "offset": 0, "size": "tiny", "sizes": {"N": 8}, "seed": 7, "strict": True, "tensors": self.TENSORS, **more}

    def error(self, source, **more):
        reply = self.problem(source).answer(self.request(**more))
        self.assertEqual(reply["error"]["kind"], "problem", reply)
        return reply["error"]["message"]

    def read(self, part):
        return self.memory.get(part["offset"], part["bytes"], np.float32)

    def test_makes_inputs_and_expected_outputs(self):
        reply = self.problem().answer(self.request())
        self.assertEqual([part["tensor"] for part in reply["inputs"]], ["x", "y"])
        self.assertEqual([part["tensor"] for part in reply["expected"]], ["y"])
        x, y = map(self.read, reply["inputs"])
        np.testing.assert_allclose(self.read(reply["expected"][0]), y + 2 * x)
        self.assertTrue(((y >= 0) & (y <= 1)).all())

    def test_another_seed_gives_other_data_and_an_entry_can_be_staged_again(self):
        problem = self.problem()
        first = self.read(problem.answer(self.request())["inputs"][0])
        other = self.read(problem.answer(self.request(entry=1, seed=8))["inputs"][0])
        self.assertFalse(np.array_equal(first, other))
        again = problem.answer({"do": "stage", "pool": "p", "entry": 0, "offset": 0})
        np.testing.assert_array_equal(self.read(again["inputs"][0]), first)
        problem.answer({"do": "drop", "pool": "p"})
        self.assertEqual(problem.answer({"do": "stage", "pool": "p", "entry": 0, "offset": 0})["error"]["kind"], "closed")

    def test_distributions_change_what_is_filled_and_nothing_else(self):
        problem = self.problem()
        x, y = map(self.read, problem.answer(self.request(distribution="EQUAL", magnitude=0))["inputs"])
        self.assertEqual(len(set(y.tolist())), 1)
        self.assertEqual(len(set(x.tolist())), 8)

    def test_scaled_inputs_are_what_the_problem_makes_times_the_magnitude(self):
        problem = self.problem()
        x, y = map(self.read, problem.answer(self.request())["inputs"])
        reply = problem.answer(self.request(entry=1, distribution="SCALED", magnitude=64.0))
        scaled_x, same_y = map(self.read, reply["inputs"])
        np.testing.assert_array_equal(scaled_x, 64 * x)
        np.testing.assert_array_equal(same_y, y, "its fill has a range of its own")
        np.testing.assert_allclose(self.read(reply["expected"][0]), y + 128 * x)

    def test_a_reference_that_refuses_scaled_inputs_has_nothing_to_compare(self):
        source = AXPY.replace("    return {\"y\"", "    assert abs(x).max() < 100\n    return {\"y\"")
        reply = self.problem(source).answer(self.request(distribution="SCALED", magnitude=2.0**40))
        self.assertTrue(np.isnan(self.read(reply["expected"][0])).all())

    def test_an_exception_is_one_line_that_names_the_line(self):
        source = AXPY.replace("    rng =", "    helper()\n    rng =") + "\n\ndef helper():\n    raise ValueError('no\\nway')\n"
        self.assertEqual(self.error(source), "problem.py:16 in helper(): ValueError: no way")

    def test_statements_that_fail_are_named(self):
        with self.assertRaisesRegex(pawl_problem.ProblemError, "problem.py:2: SyntaxError"):
            self.problem("x = 1\ndef f(:\n")
        with self.assertRaisesRegex(pawl_problem.ProblemError, "problem.py:1: ModuleNotFoundError"):
            self.problem("import there_is_none\n")
        with self.assertRaisesRegex(pawl_problem.NotHere, "problem.py needs PyTorch, which .* lacks"), mock.patch.dict(sys.modules, {"torch": None}):
            self.problem("import torch\n")
        with self.assertRaisesRegex(pawl_problem.ProblemError, "problem.py has no function reference"):
            self.problem("def inputs(sizes, seed): pass\n")
        with self.assertRaisesRegex(pawl_problem.ProblemError, "problem.py:1: SystemExit"):
            self.problem("raise SystemExit(3)\n")

    def test_wrong_names_are_named(self):
        self.assertIn("inputs() returned 'z', which kernel.toml does not have; its inputs are x, y", self.error(AXPY.replace('{"x":', '{"z":')))
        self.assertIn("inputs() returned 'tmp', which is not an input but scratch", self.error(AXPY.replace('{"x":', '{"tmp":')))
        self.assertIn("inputs() returned a ndarray, not a dict", self.error(AXPY.replace('{"x": rng.standard_normal(sizes["N"], dtype=np.float32)}', "np.zeros(8)")))
        self.assertIn("inputs() did not return 'x', for which kernel.toml has no fill", self.error(AXPY.replace('{"x": rng.standard_normal(sizes["N"], dtype=np.float32)}', "{}")))
        self.assertIn("reference() returned 'out', which is not an output of kernel.toml; those are y", self.error(AXPY.replace('{"y": y', '{"out": y')))
        self.assertIn("reference() did not return 'y'", self.error(AXPY.replace('{"y": y + 2 * x}', "{}")))
        self.assertIn("reference() returned a ndarray, not a dict of y", self.error(AXPY.replace('{"y": y + 2 * x}', "y")))

    def test_wrong_shapes_and_types_are_named(self):
        self.assertIn("x of inputs() has shape [9], kernel.toml says [8]", self.error(AXPY.replace('sizes["N"]', 'sizes["N"] + 1')))
        self.assertIn("x of inputs() has type float64", self.error(AXPY.replace("dtype=np.float32", "dtype=np.float64")))
        self.assertIn("y of reference() has shape [7]", self.error(AXPY.replace("y + 2 * x", "y[:7]")))
        self.assertIn("y of reference()[0] is NaN", self.error(AXPY.replace("y + 2 * x", "y * float('nan')")))

    def test_other_data_for_the_same_seed_is_an_error(self):
        source = AXPY.replace("default_rng(seed)", "default_rng()")
        self.assertIn("inputs() gives other data for the same seed: 'x' differs", self.error(source))
        # The global generators are seeded: a problem that uses them is as good.
        careless = AXPY.replace('rng.standard_normal(sizes["N"], dtype=np.float32)', 'np.random.rand(sizes["N"]).astype(np.float32)')
        self.assertNotIn("error", self.problem(careless).answer(self.request()))

    def test_a_reference_that_changes_its_inputs_is_an_error(self):
        self.assertIn("reference() changed its input 'x'", self.error(AXPY.replace("    return {\"y\"", "    x[3] = 5\n    return {\"y\"")))
        in_place = AXPY.replace("    return {\"y\": y + 2 * x}", "    y += 2 * x\n    return {\"y\": y}")
        self.assertNotIn("error", self.problem(in_place).answer(self.request()))

    def test_data_are_held_against_the_fill_of_kernel_toml(self):
        tensors = [spec("x", [8], fill="uniform", low=-1e-6, high=1e-6)] + self.TENSORS[1:]
        self.assertIn("outside of the range of kernel.toml", self.error(AXPY, tensors=tensors))

    def test_its_own_check_judges_outputs_and_is_tested_itself(self):
        strict = AXPY + "\n\ndef check(got, expected):\n    assert np.allclose(got['y'], expected['y'], atol=1e-6), 'y is off'\n"
        problem = self.problem(strict)
        expected = self.read(problem.answer(self.request())["expected"][0])

        def check(problem, outputs):
            self.memory.put([("y", outputs)], 0)
            call = {"pool": "p", "entry": 0, "outputs": [{"tensor": "y", "offset": 0, "bytes": 32}]}
            return problem.answer({"do": "check", "calls": [call], "self_test": True})

        self.assertEqual(check(problem, expected), {"verdicts": [""], "lenient": []})
        self.assertEqual(check(problem, expected + 1)["verdicts"], ["y is off"])
        for verdict, says in [("True", ""), ("None", ""), ("False", "check() says that it is wrong"), ("'much'", "much")]:
            lenient = self.problem(AXPY + f"\n\ndef check(got, expected):\n    return {verdict}\n")
            lenient.answer(self.request())
            reply = check(lenient, expected)
            self.assertEqual(reply["verdicts"], [says])
            self.assertEqual(bool(reply["lenient"]), says == "")
        broken = self.problem(AXPY + "\n\ndef check(got, expected):\n    return got['nothing']\n")
        broken.answer(self.request())
        self.assertIn("problem.py:15 in check(): KeyError", check(broken, expected)["error"]["message"])

    def test_without_pytorch_there_is_no_baseline(self):
        request = {"do": "baseline", "size": "tiny", "sizes": {"N": 8}, "seed": 1, "tensors": self.TENSORS, "measurements": 3}
        self.assertEqual(self.problem().answer(request)["error"]["kind"], "no baseline")
        own = self.problem(AXPY + "\n\ndef baseline(x, y):\n    return reference(x, y)\n")
        self.assertEqual(own.answer(request)["error"]["kind"], "problem")

    def test_what_lies_in_shared_memory_can_be_an_input(self):
        self.memory.put([("y", np.arange(8, dtype=np.float32))], 0)
        tensors = [self.TENSORS[0], {**self.TENSORS[1], "fill": "file", "data": {"offset": 0, "bytes": 32}}]
        reply = self.problem().answer(self.request(tensors=tensors, strict=False))
        np.testing.assert_array_equal(self.read(reply["inputs"][1]), np.arange(8))


class Pipes(unittest.TestCase):
    def test_messages_of_every_length_arrive(self):
        read, write = os.pipe()
        with open(read, "rb", 0), open(write, "wb", 0):
            pipe = pawl_problem.Pipe(read, write)
            for length in (0, 1, 127, 128, 20000):
                pipe.write({"text": "x" * length})
                self.assertEqual(pipe.read(), {"text": "x" * length})


if __name__ == "__main__":
    unittest.main()
