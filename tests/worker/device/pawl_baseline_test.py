"""pawl_baseline.py without PyTorch and without a GPU: a fake torch whose clock advances by what its graphs hold."""
import contextlib
import ctypes
import io
import itertools
import json
import math
import pathlib
import random
import statistics
import struct
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

root = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(root / "worker/device"))
import pawl_baseline  # noqa: E402


def tensor(name, shape, type="f32", role="input", **more):
    return {"name": name, "type": type, "role": role, "shape": shape, **more}


class Placement(unittest.TestCase):
    TENSORS = [tensor("in", [300, 7], align=1024), tensor("weight", [13], "f16"), tensor("out", [1], role="output", align=16)]

    def test_keeps_tensors_apart_and_aligned_in_every_style(self):
        rng, base = random.Random(1), 7 * 512
        size = pawl_baseline.region_bytes(self.TENSORS, 4)
        for style, room in itertools.product(["packed", "gaps", "scattered"], [size, 10 * size]):
            for _ in range(50):
                places = pawl_baseline.draw_places(self.TENSORS, 4, base, room, style, rng)
                spans = []
                for offsets in places:
                    for each, offset in zip(self.TENSORS, offsets):
                        self.assertEqual((base + offset) % pawl_baseline.align_of(each), 0, style)
                        spans.append((offset, offset + pawl_baseline.bytes_of(each)))
                spans.sort()
                self.assertGreaterEqual(spans[0][0], 0)
                self.assertLessEqual(spans[-1][1], room, style)
                for (_, end), (begin, _) in zip(spans, spans[1:]):
                    self.assertLessEqual(end, begin, style)

    def test_differs_from_draw_to_draw(self):
        rng = random.Random(1)
        drawn = [str(pawl_baseline.draw_places(self.TENSORS, 2, 0, 1 << 20, "packed", rng)) for _ in range(20)]
        self.assertEqual(len(set(drawn)), 20)


class FakeDriver:
    """libcuda with what the winner needs. Launches go to `launched`, or into the graph that is captured."""

    def __init__(self, torch=None, us=1, fails=None):
        self.torch, self.us, self.fails, self.launched, self.attributes = torch, us, fails, [], []

    def _result(self, name):
        return 218 if name == self.fails else 0

    def cuModuleLoadData(self, module, image):
        self.image = image.value
        return self._result("cuModuleLoadData")

    def cuModuleGetFunction(self, function, module, name):
        function._obj.value = sum(name.value)
        return self._result("cuModuleGetFunction")

    def cuFuncSetAttribute(self, function, attribute, value):
        self.attributes.append((function.value, attribute.value, value.value))
        return 0

    def cuLaunchKernel(self, function, *rest):
        extents, (stream, pointers, extra) = [each.value for each in rest[:7]], rest[7:]
        addresses = list(pointers)
        self.launched.append((function.value, extents, stream.value, ctypes.string_at(addresses[0], 8), ctypes.string_at(addresses[-1], 4)))
        if self.torch:
            self.torch.cuda.work(self.us)
        return self._result("cuLaunchKernel")


class Winner(unittest.TestCase):
    PLAN = {
        "tensors": [],
        "launches": [
            {"entry": "a", "grid": [4, 2, 1], "block": [64, 1, 1], "shared": 100, "arguments": [{"tensor": 0}, {"bytes": "ffffff7f"}]},
            {"entry": "b", "grid": [9, 1, 1], "block": [32, 1, 1], "shared": 0, "arguments": [{"tensor": 1}, {"bytes": "07000000"}]},
            {"entry": "a", "grid": [1, 1, 1], "block": [64, 1, 1], "shared": 70000, "arguments": [{"tensor": 0}, {"bytes": "00000000"}]},
        ],
    }

    def setUp(self):
        self.torch = FakeTorch()

    def test_launches_the_plan_on_the_current_stream(self):
        driver = FakeDriver()
        winner = pawl_baseline.Winner(self.torch, b"cubin", self.PLAN, driver)
        self.assertEqual(driver.image, b"cubin")
        self.assertEqual(set(driver.attributes), {(ord("a"), 8, 70000)})
        high = 0x7F0012345600
        winner.call([types.SimpleNamespace(data_ptr=lambda: high), types.SimpleNamespace(data_ptr=lambda: 512)])
        self.assertEqual([each[0] for each in driver.launched], [ord("a"), ord("b"), ord("a")])
        self.assertEqual(driver.launched[0][1], [4, 2, 1, 64, 1, 1, 100])
        self.assertEqual(driver.launched[0][2], self.torch.cuda.current_stream().cuda_stream)
        self.assertEqual(struct.unpack("<Q", driver.launched[0][3])[0], high)
        self.assertEqual(driver.launched[0][4], b"\xff\xff\xff\x7f")
        self.assertEqual(driver.launched[1][4], b"\x07\0\0\0")

    def test_says_what_failed(self):
        for call in ("cuModuleLoadData", "cuModuleGetFunction"):
            with self.assertRaisesRegex(RuntimeError, f"{call}.* failed with CUDA error 218"):
                pawl_baseline.Winner(self.torch, b"cubin", self.PLAN, FakeDriver(fails=call))
        winner = pawl_baseline.Winner(self.torch, b"cubin", self.PLAN, FakeDriver(fails="cuLaunchKernel"))
        with self.assertRaisesRegex(RuntimeError, "cuLaunchKernel of a failed"):
            winner.call([types.SimpleNamespace(data_ptr=lambda: 0)] * 2)


class Arguments(unittest.TestCase):
    VIEWS = [types.SimpleNamespace(data_ptr=lambda address=address: address) for address in (0x100, 0x200, 0x300)]

    def test_repeated_launches_count_and_exchange_their_tensors(self):
        launch = {"entry": "k", "arguments": [{"tensor": 0}, {"tensor": 1}, {"index": True}], "repeat": 3, "swap": [0, 1]}
        plan = {"launches": [launch, {"entry": "last", "arguments": [{"tensor": 1}]}]}
        seen = [[int.from_bytes(each, "little") for each in pawl_baseline.arguments_of(launch, named, index)]
                for launch, named, index in pawl_baseline.launches_of(plan, self.VIEWS)]  # fmt: skip
        self.assertEqual(seen, [[0x100, 0x200, 0], [0x200, 0x100, 1], [0x100, 0x200, 2], [0x100]])
        self.assertEqual([view.data_ptr() for view in pawl_baseline.named_after(plan, self.VIEWS)], [0x200, 0x100, 0x300])
        launch["repeat"] = 4
        self.assertEqual(pawl_baseline.named_after(plan, self.VIEWS), self.VIEWS)

    def test_launches_of_a_loop_take_turns(self):
        launches = [
            {"entry": "a", "arguments": [{"tensor": 0}, {"index": True}], "repeat": 3, "loop": 2},
            {"entry": "b", "arguments": [{"tensor": 0}, {"index": True}], "repeat": 3, "swap": [0, 1]},
            {"entry": "c", "arguments": [{"tensor": 0}]},
        ]
        plan = {"launches": launches}
        seen = [(launch["entry"], *[int.from_bytes(each, "little") for each in pawl_baseline.arguments_of(launch, named, index)])
                for launch, named, index in pawl_baseline.launches_of(plan, self.VIEWS)]  # fmt: skip
        expected = [("a", 0x100, 0), ("b", 0x100, 0), ("a", 0x200, 1), ("b", 0x200, 1), ("a", 0x100, 2), ("b", 0x100, 2), ("c", 0x200)]
        self.assertEqual(seen, expected)
        self.assertEqual([view.data_ptr() for view in pawl_baseline.named_after(plan, self.VIEWS)], [0x200, 0x100, 0x300])
        for launch in launches[:2]:
            launch["repeat"] = 2
        self.assertEqual(pawl_baseline.named_after(plan, self.VIEWS), self.VIEWS)

    def test_variables_get_their_tensors_before_the_calls(self):
        plan = {"launches": [], "symbols": [{"name": "_ZN4club7weightsE", "tensor": 1}]}
        driver, copied = FakeDriver(), []

        def get_global(address, size, module, name):
            address._obj.value, size._obj.value = sum(name.value), 32
            return 0

        driver.cuModuleGetGlobal_v2 = get_global
        driver.cuMemcpyDtoD_v2 = lambda to, source, size: copied.append((to.value, source.value, size.value)) or 0
        pawl_baseline.Winner(FakeTorch(), b"cubin", plan, driver).prepare(self.VIEWS)
        self.assertEqual(copied, [(sum(b"_ZN4club7weightsE"), 0x200, 32)])

    def test_structs_lie_as_in_c(self):
        fields = [{"bytes": "01"}, {"tensor": 0}, {"bytes": "02000000"}]
        content = pawl_baseline.struct_bytes(fields, self.VIEWS, 0)
        self.assertEqual(content, b"\1" + bytes(7) + struct.pack("<Q", 0x100) + b"\2\0\0\0" + bytes(4))
        launch = {"arguments": [{"fields": fields}]}
        self.assertEqual(pawl_baseline.arguments_of(launch, self.VIEWS), [content])
        launch["arguments"][0]["in_memory"] = True
        structs = {content: self.VIEWS[2]}
        self.assertEqual(pawl_baseline.arguments_of(launch, self.VIEWS, 0, structs), [struct.pack("<Q", 0x300)])

    def test_cooperative_launches_and_clusters_have_attributes(self):
        plan = {"launches": [{"entry": "k", "grid": [4, 1, 1], "block": [64, 1, 1], "shared": 16, "arguments": [],
                              "cooperative": True, "cluster": [2, 1, 1]}]}  # fmt: skip
        driver = FakeDriver()
        seen = []

        def launch(config, function, pointers, extra):
            config = config._obj
            attributes = (pawl_baseline.LaunchAttribute * config.count).from_address(config.attributes)
            seen.append((list(config.extents), [(each.id, each.value[0]) for each in attributes]))
            return 0

        driver.cuLaunchKernelEx = launch
        pawl_baseline.Winner(FakeTorch(), b"cubin", plan, driver).call([])
        self.assertEqual(seen, [([4, 1, 1, 64, 1, 1, 16], [(4, 2), (2, 1)])])


class FakeTensor:
    dtype, shape = "float32", [64]

    def element_size(self):
        return 4

    def copy_(self, other):
        self.fills.append(("copy", other.address))

    def __init__(self, address, elements, fills=None):
        self.address, self.elements, self.fills, self.value = address, elements, fills if fills is not None else [], 0.0

    def __getitem__(self, places):
        return FakeTensor(self.address + places.start, places.stop - places.start, self.fills)

    def view(self, as_what):
        return FakeTensor(self.address, math.prod(as_what) if isinstance(as_what, list) else self.elements, self.fills)

    def data_ptr(self):
        return self.address

    def numel(self):
        return self.elements

    def detach(self):
        return self

    clone = detach

    def normal_(self):
        self.fills.append("normal")

    def uniform_(self, low, high):
        self.fills.append(("uniform", low, high))

    def random_(self, low, high):
        self.fills.append(("random", low, high))

    def clamp_(self, low, high):
        self.fills.append(("clamp", low, high))

    def zero_(self):
        pass


class FakeCuda:
    """Time passes on this GPU only by work(), which a capture collects instead."""

    def __init__(self):
        self.now, self.capturing, self.graphs, self.replays = 0.0, None, 0, []
        self.drift = itertools.repeat(1.0)

    def work(self, us):
        if self.capturing is not None:
            self.capturing.append(us)
        else:
            self.now += us

    def is_available(self):
        return True

    def mem_get_info(self):
        return (8 << 30, 8 << 30)

    def synchronize(self):
        pass

    def empty_cache(self):
        pass

    def _sleep(self, cycles):
        self.now += 1000  # before the first event: nobody may count it

    def current_stream(self):
        return types.SimpleNamespace(cuda_stream=0x7F0000000010, wait_stream=lambda other: None)

    def Stream(self):
        return types.SimpleNamespace(wait_stream=lambda other: None)

    def stream(self, stream):
        return contextlib.nullcontext()

    def Event(self, enable_timing):
        cuda = self

        class Event:
            def record(self):
                self.at = cuda.now

            def elapsed_time(self, stop):
                return (stop.at - self.at) / 1000

        return Event()

    def CUDAGraph(self):
        cuda = self
        self.graphs += 1

        class Graph:
            works = []

            def replay(self):
                cuda.replays.append(sum(self.works))
                cuda.work(sum(self.works) * next(cuda.drift))

        return Graph()

    @contextlib.contextmanager
    def graph(self, graph):
        self.capturing = graph.works = []
        yield
        self.capturing = None


class FakeTorch(types.SimpleNamespace):
    def __init__(self):
        super().__init__(cuda=FakeCuda(), __version__="9.9", uint8="uint8", float16="float16", float32="float32", int32="int32")
        self.filled = []

    def empty(self, size, dtype, device):
        return FakeTensor(1 << 20, size, self.filled)

    def inference_mode(self):
        return contextlib.nullcontext()

    def manual_seed(self, seed):
        self.seed = seed


TENSORS = [tensor("in", [64, 32]), tensor("index", [8], "i32", low=2, high=5), tensor("p", [4], fill="uniform", low=-3.0, high=0.5),
           tensor("partial", [16], role="scratch"), tensor("out", [64], role="output")]


class Compare(unittest.TestCase):
    def compare(self, baseline_us, winner_us, drift=None, outputs=1):
        torch = FakeTorch()
        if drift:
            torch.cuda.drift = drift

        def compute(given, sizes, tensors):
            self.assertIs(given, torch)
            self.assertEqual(sizes, {"ROWS": 64})
            self.assertEqual(sorted(tensors), ["in", "index", "out", "p"])
            torch.cuda.work(baseline_us)
            return [FakeTensor(0, 64)] * outputs

        plan = {"tensors": TENSORS, "launches": [{"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0,
                                                  "arguments": [{"tensor": 0}, {"tensor": 4}, {"bytes": "40000000"}]}]}
        baseline = pawl_baseline.Baseline(torch, compute, {"ROWS": 64}, TENSORS)
        winner = pawl_baseline.Winner(torch, b"cubin", plan, FakeDriver(torch, winner_us))
        clock = itertools.count(0, 0.1)
        with mock.patch.object(pawl_baseline, "relative_difference", lambda got, expected: self.difference):
            result = pawl_baseline.compare(torch, baseline, winner, TENSORS, random.Random(3), now=lambda: next(clock))
        return torch, result

    difference = 0.001

    def test_answers_a_ratio_for_each_placement(self):
        torch, result = self.compare(5, 2)
        self.assertEqual(len(result["log_ratios"]), pawl_baseline.BLOCKS)
        for ratio in result["log_ratios"]:
            self.assertAlmostEqual(ratio, math.log(2.5), places=9)
        self.assertAlmostEqual(result["baseline_us"], 5)
        self.assertAlmostEqual(result["best_us"], 2)
        self.assertGreater(torch.cuda.graphs, 2 * pawl_baseline.BLOCKS - 1)
        self.assertEqual(max(torch.cuda.replays), 20 * 5)

    def test_takes_a_drift_of_the_gpu_out_of_the_ratio(self):
        steps = (1 + 1e-5 * i for i in itertools.count())  # each replay is a little slower than the one before
        _, result = self.compare(5, 2, steps)
        self.assertAlmostEqual(statistics.mean(result["log_ratios"]), math.log(2.5), places=4)

    def test_times_fewer_calls_and_blocks_where_they_are_slow(self):
        torch, result = self.compare(8e5, 4e5)
        self.assertEqual(len(result["log_ratios"]), 9, "60 s / 4 replays of 1.6 s")
        self.assertEqual(max(torch.cuda.replays), 2 * 8e5, "two calls in a graph")
        _, result = self.compare(8e6, 4e6)
        self.assertEqual(len(result["log_ratios"]), pawl_baseline.MIN_BLOCKS)

    def test_has_one_call_in_a_graph_where_calls_share_inputs(self):
        def calls(*tensors):
            return pawl_baseline.calls_in_graph(FakeTorch(), [*tensors, tensor("out", [64], role="output")], 5)

        drawn = tensor("in", [64], fill="normal")
        self.assertEqual(calls(drawn), 20)
        self.assertEqual(calls(drawn, tensor("ones", [64], fill="ones")), 20)
        self.assertEqual(calls(drawn, tensor("weight", [64], fill="normal", static=True)), 1)
        self.assertEqual(calls(drawn, tensor("graph", [64], "i32", fill="file")), 1)
        self.assertEqual(calls(tensor("ones", [64], fill="ones")), 1)
        self.assertEqual(calls(), 1)

    def test_fills_each_input_within_its_range(self):
        torch, _ = self.compare(5, 2)
        kinds = {str(each) for each in torch.filled}
        self.assertEqual(kinds, {"normal", "('random', 2, 6)", "('uniform', 0.0, 0.5)", "('random', 0, 256)"})

    def test_no_replay_finds_inputs_or_outputs_of_the_one_before(self):
        torch, _ = self.compare(5, 2)
        timed = len([us for us in torch.cuda.replays if us in (20 * 5, 20 * 2)])
        self.assertGreaterEqual(timed, 4 * pawl_baseline.BLOCKS)
        self.assertEqual(torch.filled.count(("random", 0, 256)), 20 * timed, "one output in each of 20 calls")
        self.assertGreater(torch.filled.count("normal"), 20 * timed)

    def test_wants_the_same_computation_of_both(self):
        self.difference = 0.5
        with self.assertRaisesRegex(ValueError, "differ by 0.5 of their norm in out"):
            self.compare(5, 2)
        self.difference = math.nan
        with self.assertRaisesRegex(ValueError, "differ by nan"):
            self.compare(5, 2)
        with self.assertRaisesRegex(ValueError, "returned 2 outputs, the bundle has 1"):
            self.compare(5, 2, outputs=2)


class Problem(unittest.TestCase):
    """The baseline of a problem.py."""

    TENSORS = [tensor("x", [64]), tensor("y", [64], role="inout"), tensor("out", [64], role="output")]
    REQUEST = {"size": "main", "sizes": {"N": 64}, "seed": 7, "measurements": 6, "tensors": TENSORS}

    def time(self, eager_us, compiled_us, capturable=True):
        torch = FakeTorch()
        given = {"x": FakeTensor(0xAA, 64), "y": FakeTensor(0xBB, 64)}

        def compute(x, y, us=eager_us):
            if torch.cuda.capturing is not None and not capturable:
                torch.cuda.capturing = None
                raise RuntimeError("operation not permitted when stream is capturing\nat length")
            torch.cuda.work(us)
            return {"out": x, "y": y}

        def compile(function, dynamic):
            if compiled_us is None:
                return lambda x, y: 1 / 0
            return lambda x, y: function(x, y, compiled_us)

        torch.compile = compile
        return torch, pawl_baseline.time_problem(torch, compute, given, self.REQUEST)

    def test_the_faster_of_eager_and_compiled_counts_and_both_are_stated(self):
        torch, answer = self.time(5, 3)
        self.assertEqual(answer, {"size": "main", "graph_us": 3, "event_us": 3,
                                  "what": "torch 9.9 problem.py, torch.compile (eager 5.00 us; torch.compile 3.00 us)"})  # fmt: skip
        self.assertEqual({each for each in torch.filled if each[0] == "copy"}, {("copy", 0xAA), ("copy", 0xBB)})
        self.assertIn("problem.py, eager (", self.time(3, 5)[1]["what"])

    def test_what_does_not_compile_is_said(self):
        _, answer = self.time(5, None)
        self.assertEqual(answer["graph_us"], 5)
        self.assertIn("eager 5.00 us; torch.compile failed: ZeroDivisionError", answer["what"])

    def test_a_compilation_that_takes_too_long_is_given_up_for_all_sizes(self):
        compiled = []

        def compile(function, dynamic):
            def hangs(x, y):
                compiled.append(1)
                try:
                    time.sleep(30)
                except Exception as error:
                    raise RuntimeError("backend failed") from error  # as a compiler would

            return hangs

        with mock.patch.object(pawl_baseline, "COMPILE_SECONDS", 0.05), mock.patch.object(pawl_baseline, "gave_up_compiling", False):
            torch = FakeTorch()
            torch.compile = compile
            given = {"x": FakeTensor(0xAA, 64), "y": FakeTensor(0xBB, 64)}

            def compute(x, y):
                torch.cuda.work(5)
                return {"out": x, "y": y}

            begin = time.monotonic()
            answer = pawl_baseline.time_problem(torch, compute, given, self.REQUEST)
            self.assertLess(time.monotonic() - begin, 10)
            self.assertEqual(answer["graph_us"], 5)
            self.assertIn("torch.compile failed: TookTooLong: it took longer than 0.05 s to compile", answer["what"])
            later = pawl_baseline.time_problem(torch, compute, given, self.REQUEST)
            self.assertIn("eager 5.00 us; torch.compile took too long at another size", later["what"])
            self.assertEqual(len(compiled), 1)

    def test_what_cant_be_captured_is_launched_call_by_call(self):
        _, answer = self.time(5, 3, capturable=False)
        self.assertEqual(answer["graph_us"], 3)
        self.assertIn("torch.compile 3.00 us, not by graph", answer["what"])

    def test_is_compared_with_the_winner(self):
        torch = FakeTorch()
        given = {"x": FakeTensor(0xAA, 64), "y": FakeTensor(0xBB, 64)}

        def compute(x, y):
            torch.cuda.work(6)
            return {"out": x, "y": y}

        launch = {"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "arguments": [{"tensor": 0}, {"tensor": 1}, {"bytes": "40000000"}]}
        with tempfile.NamedTemporaryFile() as cubin, mock.patch.object(pawl_baseline, "relative_difference", lambda got, expected: 0), \
                mock.patch.object(pawl_baseline.ctypes, "CDLL", lambda name: FakeDriver(torch, 2)):  # fmt: skip
            request = {**self.REQUEST, "winner": {"cubin": cubin.name, "plan": {"tensors": self.TENSORS, "launches": [launch]}}}
            answer = pawl_baseline.compare_problem(torch, compute, given, request)
        self.assertAlmostEqual(answer["log_ratios"][0], math.log(3))
        self.assertEqual(answer["what"], "torch 9.9 problem.py, eager")


class Alone(unittest.TestCase):
    def test_times_a_call_in_a_graph_and_by_itself(self):
        torch = FakeTorch()
        request = {"size": "main", "sizes": {"N": 4}, "seed": 7, "measurements": 30, "tensors": [tensor("in", [4]), tensor("out", [4], role="output")]}
        answer = pawl_baseline.answer(lambda torch, sizes, tensors: torch.cuda.work(3), "f(x)", request, torch)
        self.assertEqual(answer, {"graph_us": 3, "event_us": 3, "what": "torch 9.9 f(x)"})
        self.assertEqual(torch.seed, 7)

    def test_answers_an_error_for_a_size_that_fails(self):
        def fails(torch, sizes, tensors):
            raise RuntimeError("out of memory\nat length")

        request = {"size": "main", "sizes": {}, "seed": 7, "measurements": 3, "tensors": [tensor("in", [4])]}
        self.assertEqual(pawl_baseline.answer(fails, "f", request, FakeTorch()), {"error": "RuntimeError: out of memory"})

    def test_says_that_there_is_no_torch_or_gpu(self):
        with mock.patch.dict(sys.modules, {"torch": None}):
            self.assertIn("PyTorch is not installed", pawl_baseline.answer(None, "f", {})["error"])
        torch = FakeTorch()
        torch.cuda.is_available = lambda: False
        self.assertIn("sees no GPU", pawl_baseline.answer(None, "f", {}, torch)["error"])

    def test_answers_a_line_for_each_line(self):
        lines = "".join(json.dumps({"size": size}) + "\n\n" for size in ("tiny", "main"))
        with mock.patch.object(sys, "stdin", io.StringIO(lines)), mock.patch.object(sys, "stdout", io.StringIO()) as out, \
                mock.patch.dict(sys.modules, {"torch": None}):
            pawl_baseline.main(None, "f")
        self.assertEqual([json.loads(line)["size"] for line in out.getvalue().splitlines()], ["tiny", "main"])


unittest.main()
