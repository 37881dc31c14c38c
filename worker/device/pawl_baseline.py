"""Times a bundle's baseline for Pawl: alone, and interleaved with the winner of a campaign.

A worker puts this module where a baseline script finds it. The script says what to time:

    import pawl_baseline


    def softmax(torch, sizes, tensors):
        return torch.softmax(tensors["in"], -1)


    pawl_baseline.main(softmax, "torch.softmax(x, -1)")

`tensors` has the inputs and outputs of the bundle by their names, on the GPU. The function returns the bundle's output, a
list of them in the order of kernel.toml, or None where it wrote them into `tensors`.

The baseline of a problem.py is timed by the same code (time_problem, compare_problem), eager and compiled.
"""

import ctypes
import gc
import json
import math
import random
import signal
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
MAX_REPLAYS = 5  # in a quarter: places differ more than replays
BLOCKS = 24  # each with tensors at other addresses
MIN_BLOCKS = 6
COMPARE_SECONDS = 60  # with fewer blocks where calls are slow
WARM_SECONDS = 0.3
COMPILE_SECONDS = 45  # of torch.compile at one size; what takes longer is not compiled at the others either
HOLD_CYCLES = 300_000  # during which the events and the graph are enqueued
MAX_DIFFERENCE = 0.1  # relative, between the outputs of baseline and winner: more is another computation
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CLUSTER, COOPERATIVE = 4, 2  # CU_LAUNCH_ATTRIBUTE_...

ELEMENT_BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2,
                 "i32": 4, "u32": 4, "i64": 8, "u64": 8, "bool": 1}  # fmt: skip
TORCH_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8e4m3": "float8_e4m3fn",
               "f8e5m2": "float8_e5m2", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "int16", "i32": "int32",
               "u32": "int32", "i64": "int64", "u64": "int64", "bool": "bool", "i4": "uint8", "u4": "uint8"}  # fmt: skip
PACKED = ("i4", "u4")  # two a byte
FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2")
FILLED = ("input", "inout")  # before a call
IN_ORDER = ("iota", "permutation", "sorted", "csr_offsets")


# Where tensors lie.


def bytes_of(tensor):
    if tensor["type"] in PACKED:
        return (math.prod(tensor["shape"]) + 1) // 2
    return math.prod(tensor["shape"]) * ELEMENT_BYTES[tensor["type"]]


def shape_of(tensor):
    """Of its view: packed types are bytes there."""
    shape = list(tensor["shape"])
    return shape[:-1] + [(shape[-1] + 1) // 2] if tensor["type"] in PACKED else shape


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
    """A run of GPU memory in which the tensors of several calls are placed again and again. `contents` are what inputs
    hold, by name; without it they are filled."""

    def __init__(self, torch, tensors, calls, rng, contents=None):
        self.torch, self.tensors, self.calls, self.rng, self.contents = torch, tensors, calls, rng, contents or {}
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
                views.append(self.memory[offset : offset + bytes_of(tensor)].view(dtype).view(shape_of(tensor)))
                if tensor["role"] in FILLED:
                    restore(self.torch, views[-1], tensor, self.contents)
            sets.append(views)
        self.sets = sets
        return sets

    def renew(self):
        """Before a replay: inputs are drawn again and outputs hold bytes by chance, so that no call finds what an earlier one
        left. Fills that take long stay as they were placed."""
        for views in self.sets:
            for tensor, view in zip(self.tensors, views):
                if tensor["role"] == "output":
                    view.view(self.torch.uint8).random_(0, 256)
                elif tensor["role"] == "inout" or (tensor["role"] == "input" and tensor.get("fill") not in IN_ORDER):
                    restore(self.torch, view, tensor, self.contents)


def restore(torch, view, tensor, contents):
    """What an input holds before a call."""
    content = contents.get(tensor["name"])
    if content is None:
        fill(torch, view, tensor)
    else:
        view.copy_(content.view(view.dtype))


def fill(torch, view, tensor):
    """As Pawl fills an input that is timed."""
    low, high = tensor.get("low"), tensor.get("high")
    kind = tensor.get("fill")
    if kind in ("zeros", "ones", "constant"):
        view.fill_({"zeros": 0, "ones": 1, "constant": low}[kind])
    elif kind in IN_ORDER:
        fill_in_order(torch, view, tensor, kind)
    elif tensor["type"] in PACKED or kind == "bytes":
        view.view(torch.uint8).random_(0, 256)
    elif tensor["type"] == "bool":
        view.random_(0, 2)
    elif tensor["type"] not in FLOATS:
        view.random_(int(0 if low is None else low), int(1023 if high is None else high) + 1)
    elif tensor["type"].startswith("f8"):  # PyTorch draws no such numbers
        drawn = view.float()
        fill(torch, drawn, {**tensor, "type": "f32"})
        view.copy_(drawn)
    elif tensor.get("fill") in ("uniform", "uniform_range"):
        low, high = (0.0 if low is None else low), (1.0 if high is None else high)
        if tensor["fill"] == "uniform" and low < 1 and high > 0:
            low, high = max(low, 0.0), min(high, 1.0)
        view.uniform_(low, high)
    else:
        view.normal_()
        if low is not None and high is not None:
            view.clamp_(low, high)


def fill_in_order(torch, view, tensor, kind):
    count = view.numel()
    if kind == "permutation":
        values = torch.randperm(count, device=view.device)
    elif kind == "iota":
        values = torch.arange(count, device=view.device)
    else:
        low, high = (0 if kind == "csr_offsets" else tensor.get("low") or 0), tensor.get("high") or 0
        values = (low + (high - low) * torch.rand(count, dtype=torch.float64, device=view.device)).sort().values
        if kind == "csr_offsets" and count:
            values[0], values[-1] = 0, high
    view.copy_(values.view(view.shape).to(view.dtype))


# What runs: the baseline, and the winner's cubin.


class Baseline:
    def __init__(self, torch, compute, sizes, tensors):
        self.torch, self.compute, self.sizes = torch, compute, sizes
        self.names = [t["name"] if t["role"] != "scratch" else None for t in tensors]

    def call(self, views):
        """One call; answers what must live until its graph is gone."""
        named = {name: view for name, view in zip(self.names, views) if name is not None}
        return self.compute(self.torch, self.sizes, named)


class ProblemSide:
    """baseline() or reference() of a problem.py, or the same compiled."""

    def __init__(self, torch, compute, tensors, given):
        self.torch, self.compute, self.tensors, self.given = torch, compute, tensors, given

    def call(self, views):
        named = {}
        for tensor, view in zip(self.tensors, views):
            if tensor["role"] not in FILLED:
                continue
            own = self.given[tensor["name"]]
            # Where the problem has another form of a tensor than the kernel, 4-bit values one a byte, it gets that.
            same = list(own.shape) == list(view.shape) and own.element_size() == view.element_size()
            named[tensor["name"]] = view.view(own.dtype) if same else own
        return self.compute(**named)


class Winner:
    """The launches of a plan from a cubin, in the context that PyTorch has made current, on its current stream."""

    def __init__(self, torch, cubin, plan, cuda=None):
        self.torch, self.plan = torch, plan
        self.cuda = cuda or ctypes.CDLL("libcuda.so.1")
        self.module = ctypes.c_void_p()
        self.image = cubin  # the driver may read it later
        self._check(self.cuda.cuModuleLoadData(ctypes.byref(self.module), ctypes.c_char_p(self.image)), "cuModuleLoadData")
        self.functions = {}
        self.structs = {}  # in GPU memory, by their bytes
        for launch in plan["launches"]:
            self._find(launch)

    def _find(self, launch):
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

    def prepare(self, views):
        """Before a capture: structs that lie in GPU memory are written, and variables that hold inputs."""
        self._fill_symbols(views)
        for launch, named, index in launches_of(self.plan, views):
            for argument in launch["arguments"]:
                if argument.get("in_memory"):
                    content = struct_bytes(argument["fields"], named, index)
                    if content not in self.structs:
                        self.structs[content] = self.torch.tensor(list(content), dtype=self.torch.uint8, device="cuda")

    def _fill_symbols(self, views):
        symbols = self.plan.get("symbols", [])
        if symbols:
            self.torch.cuda.synchronize()  # the inputs are filled on another stream
        for symbol in symbols:
            address, size = ctypes.c_uint64(), ctypes.c_size_t()
            name = ctypes.c_char_p(symbol["name"].encode())
            result = self.cuda.cuModuleGetGlobal_v2(ctypes.byref(address), ctypes.byref(size), self.module, name)
            self._check(result, f"cuModuleGetGlobal of {symbol['name']}")
            view = ctypes.c_uint64(views[symbol["tensor"]].data_ptr())
            self._check(self.cuda.cuMemcpyDtoD_v2(address, view, size), f"the copy to {symbol['name']}")
        if symbols:
            self.torch.cuda.synchronize()

    def call(self, views):
        """Answers the tensors as they are named after it: launches may exchange them."""
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        named = list(views)
        for launch, named, index in launches_of(self.plan, views):
            arguments = arguments_of(launch, named, index, self.structs)
            values = [ctypes.create_string_buffer(bytes, len(bytes)) for bytes in arguments]
            pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
            result = self._launch(launch, stream, pointers)
            self._check(result, f"cuLaunchKernel of {launch['entry']}")
        return named_after(self.plan, views)

    def _launch(self, launch, stream, pointers):
        function, extents = self.functions[launch["entry"]], (*launch["grid"], *launch["block"], launch["shared"])
        if not launch.get("cooperative") and not launch.get("cluster"):
            return self.cuda.cuLaunchKernel(function, *[ctypes.c_uint(extent) for extent in extents], stream, pointers, None)
        attributes = []
        if launch.get("cluster"):
            attributes.append(LaunchAttribute(CLUSTER, 0, (ctypes.c_uint * 16)(*launch["cluster"])))
        if launch.get("cooperative"):
            attributes.append(LaunchAttribute(COOPERATIVE, 0, (ctypes.c_uint * 16)(1)))
        array = (LaunchAttribute * len(attributes))(*attributes)
        config = LaunchConfig((ctypes.c_uint * 7)(*extents), stream, ctypes.cast(array, ctypes.c_void_p), len(attributes))
        return self.cuda.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None)


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute, whose value has 64 bytes."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig; the extents of grid and block, then the bytes of shared memory."""

    _fields_ = [("extents", ctypes.c_uint * 7), ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


def launches_of(plan, views):
    """Every single launch with the tensors as they are named then and its number in its repetition."""
    named = list(views)
    launches = plan["launches"]
    begin = 0
    while begin < len(launches):
        together = launches[begin : begin + launches[begin].get("loop", 1)]
        for index in range(together[0].get("repeat") or 1):
            for launch in together:
                yield launch, named, index
                if launch.get("swap"):
                    a, b = launch["swap"]
                    named[a], named[b] = named[b], named[a]
        begin += len(together)


def named_after(plan, views):
    named = list(views)
    for launch in plan["launches"]:
        if launch.get("swap") and (launch.get("repeat") or 1) % 2:
            a, b = launch["swap"]
            named[a], named[b] = named[b], named[a]
    return named


def argument_bytes(argument, views, index):
    if "tensor" in argument:
        return struct.pack("<Q", views[argument["tensor"]].data_ptr())
    if "index" in argument:
        return struct.pack("<i", index)
    return bytes.fromhex(argument["bytes"])


def struct_bytes(fields, views, index):
    """As C lays them out: each field at a multiple of its own size."""
    content, most = b"", 1
    for field in fields:
        value = argument_bytes(field, views, index)
        most = max(most, len(value))
        content += bytes(-len(content) % len(value)) + value
    return content + bytes(-len(content) % most)


def arguments_of(launch, views, index=0, structs=None):
    """The bytes of each argument: the address of a tensor, a scalar as the worker wrote it, a struct or its address."""
    arguments = []
    for argument in launch["arguments"]:
        if "fields" not in argument:
            arguments.append(argument_bytes(argument, views, index))
            continue
        content = struct_bytes(argument["fields"], views, index)
        arguments.append(struct.pack("<Q", structs[content].data_ptr()) if argument.get("in_memory") else content)
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


def prepare(side, sets):
    if hasattr(side, "prepare"):
        for views in sets:
            side.prepare(views)


def capture(torch, side, sets, rng):
    """A graph with a call for each set of tensors, and what must live as long as it."""
    prepare(side, sets)
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph):
        for views in sets:
            # What the baseline allocates lies at a random place too.
            kept.append(torch.empty(512 * rng.randint(1, 128), dtype=torch.uint8, device="cuda"))
            kept.append(side.call(views))
    return graph, kept


def elapsed_us(torch, work, before=None):
    """GPU time of work() between two events, without the time that it takes to enqueue it, nor that of before()."""
    if before is not None:
        before()
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if hasattr(torch.cuda, "_sleep"):
        torch.cuda._sleep(HOLD_CYCLES)
    start.record()
    work()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) * 1000


def replay_us(torch, graph, replays, before=None):
    return [elapsed_us(torch, graph.replay, before) for _ in range(replays)]


def rough_us(torch, side, sets, rng):
    """About what a call takes, by a graph of one."""
    prepare(side, sets[:1])
    run_beside(torch, lambda: side.call(sets[0]))
    graph, _kept = capture(torch, side, sets[:1], rng)
    return min(replay_us(torch, graph, 4))


def calls_share_inputs(tensors):
    """CallsShareInputs of kernels/plan.h."""
    if any(tensor.get("static") or tensor.get("fill") == "file" for tensor in tensors):
        return True
    filled = [tensor for tensor in tensors if tensor["role"] in ("input", "inout")]
    return all(tensor.get("fill") in ("zeros", "ones", "constant", "iota") for tensor in filled)


def calls_in_graph(torch, tensors, fastest_us):
    """Two at least, where there is room: a call should not find its own tensors in the caches. As many as the variants
    have: a call alone in a graph bears the graph's own cost."""
    if calls_share_inputs(tensors):
        return 1
    room = min(MAX_REGION_BYTES, torch.cuda.mem_get_info()[0] // 4) // max(1, region_bytes(tensors, 1))
    return max(1, min(max(2, math.ceil(GRAPH_US / max(fastest_us, 0.1))), MAX_CALLS, room))


def time_alone(torch, baseline, tensors, measurements, rng, contents=None):
    """graph_us and event_us: a call inside a graph, and one launched by itself, as a user of the baseline sees it."""
    sets = Region(torch, tensors, 1, rng, contents).place()
    calls = calls_in_graph(torch, tensors, rough_us(torch, baseline, sets, rng))
    del sets
    torch.cuda.empty_cache()
    region = Region(torch, tensors, calls, rng, contents)
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


def time_block(torch, graphs, order, replays, before):
    """Times of both graphs, in an order such as "ABBA", each replay after before()."""
    times = {"A": [], "B": []}
    for side in order:
        times[side] += replay_us(torch, graphs[side], replays, before)
    return times


def compare(torch, baseline, winner, tensors, rng, now=time.monotonic, contents=None):
    """log(baseline / winner), one for each placement of the tensors; both run on the same inputs at the same places."""
    region = Region(torch, tensors, 1, rng, contents)
    sets = region.place()
    sides = {"A": baseline, "B": winner}
    rough = {side: rough_us(torch, sides[side], sets, rng) for side in "AB"}
    check_outputs(torch, baseline, winner, tensors, sets[0], contents)
    del region, sets
    torch.cuda.empty_cache()
    calls = calls_in_graph(torch, tensors, min(rough.values()))
    replay_time = max(rough.values()) * calls
    replays = int(max(1, min(QUARTER_US // replay_time, MAX_REPLAYS)))
    blocks = int(max(MIN_BLOCKS, min(BLOCKS, COMPARE_SECONDS * 1e6 / (4 * replays * replay_time))))

    region = Region(torch, tensors, calls, rng, contents)
    ratios, us = [], {"A": [], "B": []}
    checked = {blocks - 1, rng.randrange(blocks)}
    for block in range(blocks):
        sets = region.place()
        graphs, kept = {}, {}
        for side in rng.choice(["AB", "BA"]):
            graphs[side], kept[side] = capture(torch, sides[side], sets, rng)
        order = rng.choice(["ABBA", "BAAB"])
        warm_until = now() + (WARM_SECONDS if block == 0 else 0)
        while True:
            time_block(torch, graphs, order[:2], 2, region.renew)
            if now() >= warm_until:
                break
        times = time_block(torch, graphs, order, replays, region.renew)
        if block in checked:  # a winner that is right for its first calls only has no time that counts
            check_outputs(torch, baseline, winner, tensors, rng.choice(sets), contents)
        means = {side: statistics.fmean(times[side]) / calls for side in "AB"}  # none is left out, as in the runner
        ratios.append(math.log(means["A"] / means["B"]))
        for side in "AB":
            us[side].append(means[side])
        graphs.clear()
        kept.clear()
        torch.cuda.empty_cache()
    return {"log_ratios": ratios, "baseline_us": statistics.median(us["A"]), "best_us": statistics.median(us["B"])}


def outputs_of(result, written, names):
    """What the baseline computed, as a list of tensors."""
    if result is None:
        return written
    if isinstance(result, dict):
        return [result[name] for name in names if name in result]
    return list(result) if isinstance(result, (list, tuple)) else [result]


def check_outputs(torch, baseline, winner, tensors, views, contents=None):
    """Both must compute about the same, or the ratio of their times means nothing. The winner's outputs were validated
    before; this finds a baseline of something else and a cubin that was not loaded as it should."""
    places = [i for i, t in enumerate(tensors) if t["role"] in ("output", "inout")]

    def reset():
        for i in places:
            if tensors[i]["role"] == "output":
                views[i].zero_()
            else:
                restore(torch, views[i], tensors[i], contents or {})

    reset()
    result = outputs_of(baseline.call(views), [views[i] for i in places], [tensors[i]["name"] for i in places])
    torch.cuda.synchronize()
    if len(result) != len(places):
        raise ValueError(f"the baseline returned {len(result)} outputs, the bundle has {len(places)}")
    expected = [each.detach().clone() for each in result]
    reset()
    prepare(winner, [views])
    named = winner.call(views) or views
    torch.cuda.synchronize()
    outputs = [(tensors[i], named[i]) for i in places]
    for (tensor, view), right in zip(outputs, expected):
        if right.numel() != view.numel():
            raise ValueError(f"the baseline's {tensor['name']} has {right.numel()} elements, the bundle's {view.numel()}")
        difference = relative_difference(view, right)
        if not difference <= MAX_DIFFERENCE:
            raise ValueError(
                f"the outputs of baseline and winner differ by {difference:.2g} of their norm in {tensor['name']}: "
                "does the baseline compute what the reference does, and the winner the same in each call?"
            )


def relative_difference(got, expected):
    got, expected = got.reshape(-1).double(), expected.reshape(-1).double()
    norm = float(expected.norm())
    return float((got - expected).norm()) / norm if norm > 0 else float(got.norm())


# The baseline of a problem.py.


def contents_of(torch, tensors, given):
    """What the kernel's inputs hold, as the kernel has them: 4-bit values packed."""
    contents = {}
    for tensor in tensors:
        if tensor["role"] not in FILLED:
            continue
        own = given[tensor["name"]]
        if list(own.shape) != shape_of(tensor):
            import pawl_tensors

            packed = pawl_tensors.input_storage(own, tensor, tensor["name"])
            own = torch.from_numpy(packed).to("cuda").view(shape_of(tensor))
        contents[tensor["name"]] = own
    return contents


COMPILED = "torch.compile"
gave_up_compiling = False  # in this process, which serves one problem.py


def forms_of(torch, compute):
    """The function as it is, and compiled."""
    forms = {"eager": compute}
    if hasattr(torch, "compile") and not gave_up_compiling:
        forms[COMPILED] = torch.compile(compute, dynamic=False)
    return forms


class TookTooLong(Exception):
    pass


def compile_in_time(side, views):
    """Calls it once, which compiles it. Raises TookTooLong where that takes longer than COMPILE_SECONDS."""
    global gave_up_compiling

    def stop(_number, _frame):
        raise TookTooLong()

    begin = time.monotonic()
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, COMPILE_SECONDS, 1)  # again and again: the compiler may swallow one
    try:
        side.call(views)
    except Exception as error:
        if time.monotonic() - begin < COMPILE_SECONDS:
            raise
        gave_up_compiling = True  # the compiler may have wrapped what stop() raised
        raise TookTooLong(f"it took longer than {COMPILE_SECONDS} s to compile") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def time_form(torch, side, tensors, measurements, rng, contents):
    """Its times by graph, or, where it can't be captured, launched call by call."""
    try:
        return {**time_alone(torch, side, tensors, measurements, rng, contents), "captured": True}
    except RuntimeError as error:
        torch.cuda.synchronize()
        sets = Region(torch, tensors, 1, rng, contents).place()
        for _ in range(3):
            side.call(sets[0])
        us = statistics.median(launched_us(torch, lambda: side.call(sets[0])) for _ in range(measurements))
        return {"graph_us": us, "event_us": us, "captured": False, "why": one_line(error)}


def one_line(error):
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def time_problem(torch, compute, given, request):
    """The faster of eager and compiled is the baseline; `what` states both."""
    rng = random.SystemRandom()
    tensors = [tensor for tensor in request["tensors"] if tensor["role"] in FILLED]
    contents = contents_of(torch, tensors, given)
    times, said = {}, []
    with torch.inference_mode():
        for form, function in forms_of(torch, compute).items():
            side = ProblemSide(torch, function, tensors, given)
            try:
                if form == COMPILED:
                    compile_in_time(side, Region(torch, tensors, 1, rng, contents).place()[0])
                times[form] = time_form(torch, side, tensors, request["measurements"], rng, contents)
            except Exception as error:
                if form == "eager":
                    raise
                said.append(f"{form} failed: {one_line(error)}")
                continue
            by = "" if times[form]["captured"] else ", not by graph"
            said.append(f"{form} {times[form]['graph_us']:.2f} us{by}")
        if gave_up_compiling and COMPILED not in "".join(said):
            said.append(f"{COMPILED} took too long at another size")
    best = min(times, key=lambda form: times[form]["graph_us"])
    return {"size": request["size"], "graph_us": times[best]["graph_us"], "event_us": times[best]["event_us"],
            "what": f"torch {torch.__version__} problem.py, {best} ({'; '.join(said)})"}  # fmt: skip


def compare_problem(torch, compute, given, request):
    """The winner beside the faster of eager and compiled."""
    rng = random.SystemRandom()
    plan = request["winner"]["plan"]
    tensors = plan["tensors"]
    contents = contents_of(torch, tensors, given)
    with torch.inference_mode():
        rough, why = {}, []
        for form, function in forms_of(torch, compute).items():
            side = ProblemSide(torch, function, tensors, given)
            try:
                if form == COMPILED:
                    compile_in_time(side, Region(torch, tensors, 1, rng, contents).place()[0])
                rough[form] = (rough_us(torch, side, Region(torch, tensors, 1, rng, contents).place(), rng), side)
            except Exception as error:
                torch.cuda.synchronize()
                why.append(f"{form}: {one_line(error)}")
        if not rough:
            raise ValueError(f"the baseline can't be captured in a CUDA graph, so it was not timed beside the winner ({'; '.join(why)})")
        best = min(rough, key=lambda form: rough[form][0])
        with open(request["winner"]["cubin"], "rb") as file:
            winner = Winner(torch, file.read(), plan)
        times = compare(torch, rough[best][1], winner, tensors, rng, contents=contents)
    return {"size": request["size"], **times, "what": f"torch {torch.__version__} problem.py, {best}"}


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
