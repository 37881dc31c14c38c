"""Times a bundle's baseline for Pawl: alone, and interleaved with the winner of a campaign.

A worker puts this module where a baseline script finds it. The script says what to time:

    import pawl_baseline


    def softmax(torch, sizes, tensors):
        return torch.softmax(tensors["in"], -1)


    pawl_baseline.main(softmax, "torch.softmax(x, -1)")

`tensors` has the inputs and outputs of the bundle by their names, on the GPU. The function returns the bundle's output, a
list of them in the order of kernel.toml, or None where it wrote them into `tensors`.
"""

import ctypes
import gc
import json
import math
import random
import statistics
import struct
import sys
import time

ALIGN = 256  # bytes, as cudaMalloc gives
MAX_GAP = 4096
REGION_BYTES = 1 << 30  # over which tensors are scattered, where there is room
MAX_REGION_BYTES = 4 << 30  # for the tensors of more than one call
MAX_CALLS = 20  # in a graph, as in those that Pawl times its candidates by
GRAPH_US = 100  # of a graph: long against the resolution of events
QUARTER_US = 6000  # of replays in a quarter of a block: fewer where one is long
BLOCKS = 24  # each with tensors at other addresses
MIN_BLOCKS = 6
COMPARE_SECONDS = 60  # with fewer blocks where calls are slow
WARM_SECONDS = 0.3
HOLD_CYCLES = 300_000  # during which the events and the graph are enqueued
MAX_DIFFERENCE = 0.1  # relative, between the outputs of baseline and winner: more is another computation
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i32": 4}
TORCH_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i32": "int32"}


# Where tensors lie.


def bytes_of(tensor):
    return math.prod(tensor["shape"]) * ELEMENT_BYTES[tensor["type"]]


def align_of(tensor):
    return tensor.get("align") or ALIGN


def round_up(offset, align):
    return (offset + align - 1) // align * align


def region_bytes(tensors, calls):
    """Bytes that the tensors of so many calls need in any style."""
    return calls * sum(round_up(bytes_of(t), align_of(t)) + align_of(t) + MAX_GAP for t in tensors)


def draw_places(tensors, calls, base, size, style, rng):
    """Offsets in a region of `size` bytes at address `base`: a list for each call, one for each tensor.

    Addresses are multiples of each tensor's alignment, and no tensor lies over another. Styles: "packed", "gaps",
    "scattered".
    """
    items = [(call, i) for call in range(calls) for i in range(len(tensors))]
    rng.shuffle(items)
    needed = sum(round_up(bytes_of(t), align_of(t)) + align_of(t) for t in tensors) * calls
    spare = max(0, size - needed)
    before = [0] * len(items)
    if style == "scattered":
        cuts = sorted(rng.randint(0, spare) for _ in items)
        before = [cut - (cuts[i - 1] if i > 0 else 0) for i, cut in enumerate(cuts)]
    else:
        if style == "gaps":
            for i in range(len(items)):
                before[i] = rng.randint(0, min(spare, MAX_GAP))
                spare -= before[i]
        before[0] += rng.randint(0, spare)
    places = [[0] * len(tensors) for _ in range(calls)]
    end = base
    for (call, i), gap in zip(items, before):
        address = round_up(end + gap, align_of(tensors[i]))
        places[call][i] = address - base
        end = address + bytes_of(tensors[i])
    return places


class Region:
    """A run of GPU memory in which the tensors of several calls are placed again and again."""

    def __init__(self, torch, tensors, calls, rng):
        self.torch, self.tensors, self.calls, self.rng = torch, tensors, calls, rng
        needed = region_bytes(tensors, calls)
        free = torch.cuda.mem_get_info()[0]
        self.size = max(needed, min(free // 2, max(REGION_BYTES, needed + needed // 4)))
        self.memory = torch.empty(self.size, dtype=torch.uint8, device="cuda")

    def place(self):
        """Draws places, fills the inputs, and answers the tensors of each call."""
        style = self.rng.choice(["packed", "gaps", "scattered"])
        places = draw_places(self.tensors, self.calls, self.memory.data_ptr(), self.size, style, self.rng)
        sets = []
        for offsets in places:
            views = []
            for tensor, offset in zip(self.tensors, offsets):
                dtype = getattr(self.torch, TORCH_TYPES[tensor["type"]])
                views.append(self.memory[offset : offset + bytes_of(tensor)].view(dtype).view(tensor["shape"]))
                if tensor["role"] == "input":
                    fill(views[-1], tensor)
            sets.append(views)
        return sets


def fill(view, tensor):
    """As Pawl fills an input that is timed."""
    low, high = tensor.get("low"), tensor.get("high")
    if tensor["type"] == "i32":
        view.random_(int(0 if low is None else low), int(1023 if high is None else high) + 1)
    elif tensor.get("fill") == "uniform":
        low, high = (0.0 if low is None else low), (1.0 if high is None else high)
        if low < 1 and high > 0:
            low, high = max(low, 0.0), min(high, 1.0)
        view.uniform_(low, high)
    else:
        view.normal_()
        if low is not None and high is not None:
            view.clamp_(low, high)


# What runs: the baseline, and the winner's cubin.


class Baseline:
    def __init__(self, torch, compute, sizes, tensors):
        self.torch, self.compute, self.sizes = torch, compute, sizes
        self.names = [t["name"] if t["role"] != "scratch" else None for t in tensors]

    def call(self, views):
        """One call; answers what must live until its graph is gone."""
        named = {name: view for name, view in zip(self.names, views) if name is not None}
        return self.compute(self.torch, self.sizes, named)


class Winner:
    """The launches of a plan from a cubin, in the context that PyTorch has made current, on its current stream."""

    def __init__(self, torch, cubin, plan, cuda=None):
        self.torch, self.plan = torch, plan
        self.cuda = cuda or ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        self.image = cubin  # the driver may read it later
        self._check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), ctypes.c_char_p(self.image)), "cuModuleLoadData")
        self.functions = {}
        for launch in plan["launches"]:
            self._prepare(launch)

    def _prepare(self, launch):
        entry = launch["entry"]
        if entry not in self.functions:
            function = ctypes.c_void_p()
            name = ctypes.c_char_p(entry.encode())
            self._check(self.cuda.cuModuleGetFunction(ctypes.byref(function), self.module, name), f"cuModuleGetFunction of {entry}")
            self.functions[entry] = function
        most = max(each["shared"] for each in self.plan["launches"] if each["entry"] == entry)
        if most > 0:
            result = self.cuda.cuFuncSetAttribute(self.functions[entry], ctypes.c_int(MAX_DYNAMIC_SHARED), ctypes.c_int(most))
            self._check(result, f"cuFuncSetAttribute of {entry}, {most} bytes of dynamic shared memory")

    def _check(self, result, what):
        if result != 0:
            raise RuntimeError(f"the winner can't be run here: {what} failed with CUDA error {result}")

    def call(self, views):
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        for launch in self.plan["launches"]:
            values = [ctypes.create_string_buffer(bytes, len(bytes)) for bytes in arguments_of(launch, views)]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
            extents = [ctypes.c_uint(extent) for extent in (*launch["grid"], *launch["block"], launch["shared"])]
            result = self.cuda.cuLaunchKernel(self.functions[launch["entry"]], *extents, stream, pointers, None)
            self._check(result, f"cuLaunchKernel of {launch['entry']}")


def arguments_of(launch, views):
    """The bytes of each argument: the address of a tensor, or a scalar as the worker wrote it."""
    arguments = []
    for argument in launch["arguments"]:
        if "tensor" in argument:
            arguments.append(struct.pack("<Q", views[argument["tensor"]].data_ptr()))
        else:
            arguments.append(bytes.fromhex(argument["bytes"]))
    return arguments


# Timing.


def run_beside(torch, work):
    """Runs it once outside of a capture, as what is captured must have: libraries load and tune at their first call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def capture(torch, side, sets, rng):
    """A graph with a call for each set of tensors, and what must live as long as it."""
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph):
        for views in sets:
            # What the baseline allocates lies at a random place too.
            kept.append(torch.empty(512 * rng.randint(1, 128), dtype=torch.uint8, device="cuda"))
            kept.append(side.call(views))
    return graph, kept


def elapsed_us(torch, work):
    """GPU time of work() between two events, without the time that it takes to enqueue it."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if hasattr(torch.cuda, "_sleep"):
        torch.cuda._sleep(HOLD_CYCLES)
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) * 1000


def replay_us(torch, graph, replays):
    return [elapsed_us(torch, graph.replay) for _ in range(replays)]


def rough_us(torch, side, sets, rng):
    """About what a call takes, by a graph of one."""
    run_beside(torch, lambda: side.call(sets[0]))
    graph, _kept = capture(torch, side, sets[:1], rng)
    return min(replay_us(torch, graph, 4))


def calls_in_graph(torch, tensors, fastest_us):
    """Two at least, where there is room: a call should not find its own tensors in the caches."""
    room = min(MAX_REGION_BYTES, torch.cuda.mem_get_info()[0] // 4) // max(1, region_bytes(tensors, 1))
    return max(1, min(max(2, math.ceil(GRAPH_US / max(fastest_us, 0.1))), MAX_CALLS, room))


def time_alone(torch, baseline, tensors, measurements, rng):
    """graph_us and event_us: a call inside a graph, and one launched by itself, as a user of the baseline sees it."""
    sets = Region(torch, tensors, 1, rng).place()
    calls = calls_in_graph(torch, tensors, rough_us(torch, baseline, sets, rng))
    del sets
    torch.cuda.empty_cache()
    region = Region(torch, tensors, calls, rng)
    times = []
    for _ in range(3):  # places
        sets = region.place()
        graph, kept = capture(torch, baseline, sets, rng)
        replay_us(torch, graph, 3)
        times += replay_us(torch, graph, max(1, measurements // 3))
        del graph, kept
    single = [launched_us(torch, lambda: baseline.call(sets[i % calls])) for i in range(measurements)]
    return {"graph_us": statistics.median(times) / calls, "event_us": statistics.median(single)}


def launched_us(torch, work):
    """Time of work() between two events, the time that it takes to launch included."""
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) * 1000


def time_block(torch, graphs, order, replays):
    """Times of both graphs, in an order such as "ABBA"."""
    times = {"A": [], "B": []}
    for side in order:
        times[side] += replay_us(torch, graphs[side], replays)
    return times


def compare(torch, baseline, winner, tensors, rng, now=time.monotonic):
    """log(baseline / winner), one for each placement of the tensors; both run on the same inputs at the same places."""
    region = Region(torch, tensors, 1, rng)
    sets = region.place()
    sides = {"A": baseline, "B": winner}
    rough = {side: rough_us(torch, sides[side], sets, rng) for side in "AB"}
    check_outputs(torch, baseline, winner, tensors, sets[0])
    del region, sets
    torch.cuda.empty_cache()
    calls = calls_in_graph(torch, tensors, min(rough.values()))
    replay_time = max(rough.values()) * calls
    replays = int(max(1, min(QUARTER_US // replay_time, 15)))
    blocks = int(max(MIN_BLOCKS, min(BLOCKS, COMPARE_SECONDS * 1e6 / (4 * replays * replay_time))))

    region = Region(torch, tensors, calls, rng)
    ratios, us = [], {"A": [], "B": []}
    for block in range(blocks):
        sets = region.place()
        graphs, kept = {}, {}
        for side in rng.choice(["AB", "BA"]):
            graphs[side], kept[side] = capture(torch, sides[side], sets, rng)
        order = rng.choice(["ABBA", "BAAB"])
        warm_until = now() + (WARM_SECONDS if block == 0 else 0)
        while True:
            time_block(torch, graphs, order[:2], 2)
            if now() >= warm_until:
                break
        times = time_block(torch, graphs, order, replays)
        medians = {side: statistics.median(times[side]) / calls for side in "AB"}
        ratios.append(math.log(medians["A"] / medians["B"]))
        for side in "AB":
            us[side].append(medians[side])
        graphs.clear()
        kept.clear()
        torch.cuda.empty_cache()
    return {"log_ratios": ratios, "baseline_us": statistics.median(us["A"]), "best_us": statistics.median(us["B"])}


def outputs_of(result, written):
    """What the baseline computed, as a list of tensors."""
    if result is None:
        return written
    return list(result) if isinstance(result, (list, tuple)) else [result]


def check_outputs(torch, baseline, winner, tensors, views):
    """Both must compute about the same, or the ratio of their times means nothing. The winner's outputs were validated
    before; this finds a baseline of something else and a cubin that was not loaded as it should."""
    outputs = [(t, view) for t, view in zip(tensors, views) if t["role"] == "output"]
    for _, view in outputs:
        view.zero_()
    result = outputs_of(baseline.call(views), [view for _, view in outputs])
    torch.cuda.synchronize()
    if len(result) != len(outputs):
        raise ValueError(f"the baseline returned {len(result)} outputs, the bundle has {len(outputs)}")
    expected = [each.detach().clone() for each in result]
    for _, view in outputs:
        view.zero_()
    winner.call(views)
    torch.cuda.synchronize()
    for (tensor, view), right in zip(outputs, expected):
        if right.numel() != view.numel():
            raise ValueError(f"the baseline's {tensor['name']} has {right.numel()} elements, the bundle's {view.numel()}")
        difference = relative_difference(view, right)
        if not difference <= MAX_DIFFERENCE:
            raise ValueError(
                f"the outputs of baseline and winner differ by {difference:.2g} of their norm in {tensor['name']}: "
                "does the baseline compute what the reference does?"
            )


def relative_difference(got, expected):
    got, expected = got.reshape(-1).double(), expected.reshape(-1).double()
    norm = float(expected.norm())
    return float((got - expected).norm()) / norm if norm > 0 else float(got.norm())


# The worker's requests.


def answer(compute, what, request, torch=None):
    try:
        if torch is None:
            import torch
    except ImportError:
        return {"error": "PyTorch is not installed: pip install torch, or remove [baseline] from kernel.toml"}
    if not torch.cuda.is_available():
        return {"error": "PyTorch sees no GPU: check nvidia-smi and that torch was built for CUDA"}
    try:
        with torch.inference_mode():
            return measure(torch, compute, what, request)
    except Exception as error:  # one size that fails must not take the others with it
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


def measure(torch, compute, what, request):
    gc.freeze()  # each capture collects garbage, which takes long with all of PyTorch loaded
    torch.manual_seed(request["seed"])
    rng = random.SystemRandom()
    winner = request.get("winner")
    tensors = winner["plan"]["tensors"] if winner else request["tensors"]
    baseline = Baseline(torch, compute, request["sizes"], tensors)
    if winner:
        with open(winner["cubin"], "rb") as file:
            cubin = file.read()
        torch.cuda.synchronize()  # makes PyTorch's context current
        times = compare(torch, baseline, Winner(torch, cubin, winner["plan"]), tensors, rng)
    else:
        times = time_alone(torch, baseline, tensors, request["measurements"], rng)
    return {**times, "what": f"torch {torch.__version__} {what}"}


def main(compute, what):
    """Answers the worker's requests, a line of JSON each. `what` names the baseline in reports."""
    for line in sys.stdin:
        if line.strip():
            request = json.loads(line)
            print(json.dumps({"size": request["size"], **answer(compute, what, request)}), flush=True)
