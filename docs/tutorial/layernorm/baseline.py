"""Times F.layer_norm by Pawl's baseline protocol: a JSON request a line in, a JSON answer a line out."""
import json
import statistics
import sys


def operation(torch, rows, cols):
    """The call to time and a maker of its inputs."""
    weight = torch.randn(cols, device="cuda", dtype=torch.float16)
    bias = torch.randn(cols, device="cuda", dtype=torch.float16)
    norm = lambda x: torch.nn.functional.layer_norm(x, (cols,), weight, bias, eps=1e-5)
    return norm, lambda: torch.randn(rows, cols, device="cuda", dtype=torch.float16)


def time_us(torch, run):
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) * 1000


def measure(torch, request):
    rows, cols = request["sizes"]["ROWS"], request["sizes"]["COLS"]
    torch.manual_seed(request["seed"])
    call, make_input = operation(torch, rows, cols)
    # Every call has its own tensors: about 4 GB of them at the most.
    calls = max(2, min(20, 4 * 10**9 // (4 * rows * cols)))
    inputs = [make_input() for _ in range(calls)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(inputs[0])  # what is loaded or tuned on the first calls must not be captured
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = [call(x) for x in inputs]  # kept, so that no two calls share memory
    graph.replay()
    repeats = range(request["measurements"])
    graph_us = statistics.median(time_us(torch, graph.replay) for _ in repeats) / len(outputs)
    event_us = statistics.median(time_us(torch, lambda: call(inputs[i % calls])) for i in repeats)
    return {"graph_us": graph_us, "event_us": event_us, "what": f"torch {torch.__version__} F.layer_norm"}


def answer(request):
    try:
        import torch
    except ImportError:
        return {"error": "PyTorch is not installed: pip install torch, or remove [baseline] from kernel.toml"}
    if not torch.cuda.is_available():
        return {"error": "PyTorch sees no GPU: check nvidia-smi and that torch was built for CUDA"}
    try:
        return measure(torch, request)
    except RuntimeError as error:
        return {"error": str(error).splitlines()[0]}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"size": request["size"], **answer(request)}), flush=True)
