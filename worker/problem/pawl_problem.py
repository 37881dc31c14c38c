"""Runs a bundle's problem.py for a worker: makes inputs, computes what outputs should be, checks, and times the baseline.

A server of one worker. It imports NumPy and PyTorch once and then forks a process for each problem.py that it is given, so
that a problem starts warm, leaves nothing behind for the next one, and can be ended when it hangs or takes too much memory.
Other Python scripts of a bundle, its baseline, are run to their end in such a process.
Requests and replies are JSON on the worker's pipe (`Pipe` has the framing); tensors travel through the file of shared memory
that the worker names.
"""

import base64
import concurrent.futures
import ctypes
import gc
import json
import linecache
import mmap
import os
import random
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback

ALIGN = 4096  # of parts in shared memory
COPY_BYTES = 32 << 20  # that one thread copies at a time
LOOK_SECONDS = 0.05  # between two looks at the memory of a problem's process
SCRIPT_LOOK_SECONDS = 0.005  # between two looks whether a script has ended
SCRIPT_OUTPUT = 4 << 20  # bytes that are kept of what a script prints; the end of what it says on standard error
SCRIPT_FILE = 256 << 20  # bytes of a file that a script writes
SCALED = "SCALED"  # the distribution of what inputs() makes, times a power of two
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36


class ProblemError(Exception):
    """problem.py is wrong; the message is one line for its author."""

    kind = "problem"


class NotHere(ProblemError):
    """problem.py needs what this machine lacks."""

    kind = "machine"


class NoBaseline(ProblemError):
    """There is nothing to time here, which is no mistake of problem.py."""

    kind = "no baseline"


# Talking.


class Pipe:
    """JSON messages as the worker frames them: four bytes with the length, then a protobuf BytesValue."""

    def __init__(self, read_fd, write_fd):
        self.read_fd, self.write_fd = read_fd, write_fd

    def _read(self, count):
        parts = []
        while count > 0:
            part = os.read(self.read_fd, min(count, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def read(self):
        body = self._read(struct.unpack("<I", self._read(4))[0])
        if not body:
            return {}
        start = 1  # after the tag, a varint and the bytes
        while body[start] & 0x80:
            start += 1
        return json.loads(body[start + 1 :])

    def write(self, message):
        text = json.dumps(message).encode()
        varint, rest = bytearray(), len(text)
        while rest >= 0x80:
            varint.append(rest & 0x7F | 0x80)
            rest >>= 7
        varint.append(rest)
        body = b"\x0a" + bytes(varint) + text
        data = struct.pack("<I", len(body)) + body
        while data:
            data = data[os.write(self.write_fd, data) :]


def error_reply(kind, message):
    text = " ".join(str(message).split())[:1000]
    return {"error": {"kind": kind, "message": text.encode("utf-8", "replace").decode()}}


# Shared memory.


class SharedMemory:
    """The file through which tensors travel. It only grows: pages that are there need not be made again."""

    def __init__(self, fd):
        self.fd, self.size, self.bytes = fd, 0, None

    def view(self, end):
        import numpy as np

        if end > self.size:
            size = max(end, os.fstat(self.fd).st_size)
            os.ftruncate(self.fd, size)
            self.bytes = np.frombuffer(mmap.mmap(self.fd, size), dtype=np.uint8)
            self.size = size
        return self.bytes

    def put(self, named, offset):
        """Writes (name, array) one after another, from `offset` on, and answers where they lie."""
        import numpy as np

        parts, end, jobs = [], offset, []
        for name, array in named:
            parts.append({"tensor": name, "offset": end, "bytes": array.nbytes})
            for start in range(0, array.nbytes, COPY_BYTES):
                jobs.append((end + start, array.view(np.uint8)[start : start + COPY_BYTES]))
            end += (array.nbytes + ALIGN - 1) // ALIGN * ALIGN
        view = self.view(end)

        def copy(job):
            offset, piece = job
            np.copyto(view[offset : offset + piece.size], piece)

        if len(jobs) < 2:
            list(map(copy, jobs))
        else:  # first writes make pages, which several threads do faster
            with concurrent.futures.ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as threads:
                list(threads.map(copy, jobs))
        return parts

    def get(self, offset, count, dtype):
        """A copy."""
        return self.view(offset + count)[offset : offset + count].copy().view(dtype)


# The problem's own process.


def location(path, error):
    """Where in problem.py an exception came from, and what it says, in one line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == path:
        return f"{path}:{error.lineno}: SyntaxError: {error.msg}"
    at, traceback = None, error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == path:
            at = (traceback.tb_lineno, traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    if at is None:
        return f"{path}: {text}"
    inside = f" in {at[1]}()" if at[1] != "<module>" else ""
    return f"{path}:{at[0]}{inside}: {text}"


def is_out_of_memory(error):
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


class Problem:
    """One problem.py, and the entries of pools that were made by it."""

    def __init__(self, path, source, memory, phase=lambda text: None, file=None):
        """`file`: where it lies, with its data beside it; otherwise nowhere."""
        self.path, self.memory, self.phase = path, memory, phase
        self.entries = {}  # by (pool, entry)
        self.checked = set()  # sizes at which everything was checked once
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)
        self.names = {"__name__": "problem", "__file__": file or path}
        if file:
            sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
        self.phase("its own statements")
        self._guard(lambda: exec(compile(source, path, "exec"), self.names))
        for name in ("inputs", "reference"):
            if not callable(self.names.get(name)):
                raise ProblemError(f"{path} has no function {name}: see docs/problem-py.md")
        for name in ("check", "baseline"):
            if name in self.names and not callable(self.names[name]):
                raise ProblemError(f"{path}: {name} is not a function")

    def has(self, name):
        return name in self.names

    def _guard(self, call):
        try:
            return call()
        except ProblemError:
            raise
        except BaseException as error:
            if is_out_of_memory(error):
                raise
            if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "torch":
                raise NotHere(f"{self.path} needs PyTorch, which {sys.executable} lacks: pip install torch, or set PAWL_PYTHON to an interpreter that has it") from None
            raise ProblemError(location(self.path, error)) from None

    # Making an entry.

    def uses_torch(self, tensors):
        import pawl_tensors

        if any(pawl_tensors.is_torch(value) for value in tensors.values()):
            return True
        torch = sys.modules.get("torch")
        return not tensors and torch is not None and any(value is torch for value in self.names.values())

    def inputs(self, request):
        seed = request["seed"]
        random.seed(seed)
        import numpy as np

        np.random.seed(seed % 2**32)
        if "torch" in sys.modules:
            sys.modules["torch"].manual_seed(seed)
        self.phase(f"inputs() at size {request['size']}")
        made = self._guard(lambda: self.names["inputs"](dict(request["sizes"]), seed))
        if not isinstance(made, dict):
            raise ProblemError(f"{self.path}: inputs() returned a {type(made).__name__}, not a dict of tensors by name")
        return scaled(made, request) if request.get("distribution") == SCALED else made

    def input_storages(self, request, made, checks):
        """Storage of every tensor that is filled before a call; what inputs() left out is made by its fill."""
        import numpy as np
        import pawl_tensors

        specs = {spec["name"]: spec for spec in request["tensors"]}
        wanted = [spec for spec in request["tensors"] if spec["role"] in ("input", "inout")]
        for name in made:
            if name not in specs:
                known = ", ".join(spec["name"] for spec in wanted)
                raise ProblemError(f"{self.path}: inputs() returned {name!r}, which kernel.toml does not have; its inputs are {known}")
            if specs[name]["role"] not in ("input", "inout"):
                raise ProblemError(f"{self.path}: inputs() returned {name!r}, which is not an input but {specs[name]['role']}")
        storages, rng = {}, np.random.default_rng([request["seed"], request.get("fill_seed", 0)])
        for spec in wanted:
            name, what = spec["name"], f"{self.path}: {spec['name']} of inputs()"
            if name in made:
                # A copy: the problem's own tensor may change.
                storages[name] = self._tensor(lambda: pawl_tensors.input_storage(made[name], spec, what)).copy()
                if checks:
                    self._tensor(lambda: pawl_tensors.check_values(storages[name], spec, what))
            elif "data" in spec:
                storages[name] = self.memory.get(spec["data"]["offset"], spec["data"]["bytes"], pawl_tensors.STORAGE[spec["type"]])
            elif spec.get("fill", "problem") == "problem":
                raise ProblemError(f"{self.path}: inputs() did not return {name!r}, for which kernel.toml has no fill")
            else:
                distribution = request.get("distribution", "")
                storages[name] = pawl_tensors.fill_storage(spec, rng, "" if distribution == SCALED else distribution, request.get("magnitude", 0))
        return storages

    def _tensor(self, work):
        import pawl_tensors

        try:
            return work()
        except pawl_tensors.TensorError as error:
            raise ProblemError(str(error)) from None

    def arguments(self, request, made, storages):
        """What reference() gets: PyTorch tensors on the GPU where there is one, or NumPy arrays."""
        import pawl_tensors

        torch = sys.modules["torch"] if self.uses_torch(made) else None
        device = "cuda" if torch is not None and torch.cuda.is_available() else "cpu"
        given = {}
        for spec in request["tensors"]:
            name = spec["name"]
            if name not in storages:
                continue
            value = made.get(name)
            if torch is not None:
                tensor = value if pawl_tensors.is_torch(value) else pawl_tensors.tensor_from(torch, storages[name].copy(), spec)
                given[name] = tensor.to(device)
                if spec["role"] == "inout" and given[name] is tensor:
                    given[name] = tensor.clone()
            elif value is not None and not (value.dtype.kind == "f" and spec["type"] in pawl_tensors.BITS):
                given[name] = value.copy() if spec["role"] == "inout" else value
            else:
                given[name] = pawl_tensors.decode(storages[name], spec).copy()
        return given

    def expected(self, request, made, storages, checks):
        """What reference() says the outputs should be; nothing that compares where it does not take scaled inputs."""
        import pawl_tensors

        try:
            return self.computed(request, made, storages, checks)
        except ProblemError:
            if request.get("distribution") != SCALED:
                raise
        outputs = [spec for spec in request["tensors"] if spec["role"] in ("output", "inout")]
        return {spec["name"]: pawl_tensors.no_numbers(spec) for spec in outputs}

    def computed(self, request, made, storages, checks):
        import pawl_tensors

        given = self.arguments(request, made, storages)
        outputs = [spec for spec in request["tensors"] if spec["role"] in ("output", "inout")]
        self.phase(f"reference() at size {request['size']}")
        with self.inference():
            results = self._guard(lambda: self.names["reference"](**given))
        names = [spec["name"] for spec in outputs]
        if not isinstance(results, dict):
            raise ProblemError(f"{self.path}: reference() returned a {type(results).__name__}, not a dict of {', '.join(names)}")
        for name in results:
            if name not in names:
                raise ProblemError(f"{self.path}: reference() returned {name!r}, which is not an output of kernel.toml; those are {', '.join(names)}")
        for name in names:
            if name not in results:
                raise ProblemError(f"{self.path}: reference() did not return {name!r}")
        right = {}
        for spec in outputs:
            what = f"{self.path}: {spec['name']} of reference()"
            right[spec["name"]] = self._tensor(lambda: pawl_tensors.output_storage(results[spec["name"]], spec, what))
            if checks and not request.get("distribution"):
                nan = pawl_tensors.first_nan(right[spec["name"]], spec["type"])
                if nan is not None:
                    raise ProblemError(f"{what}{pawl_tensors.index_text(nan, spec['shape'])} is NaN")
        if checks:
            self.check_unchanged(request, given, storages)
        return right

    def check_unchanged(self, request, given, storages):
        import numpy as np
        import pawl_tensors

        for spec in request["tensors"]:
            if spec["role"] != "input":
                continue
            after = pawl_tensors.output_storage(given[spec["name"]], spec, spec["name"])
            if not np.array_equal(after.view(np.uint8), storages[spec["name"]].view(np.uint8)):
                raise ProblemError(f"{self.path}: reference() changed its input {spec['name']!r}: clone() or copy() it first")

    def inference(self):
        torch = sys.modules.get("torch")
        if torch is None:
            import contextlib

            return contextlib.nullcontext()
        return torch.inference_mode()

    def check_same_again(self, request, storages):
        import numpy as np

        again = self.input_storages(request, self.inputs(request), False)
        for name, storage in storages.items():
            if not np.array_equal(storage.view(np.uint8), again[name].view(np.uint8)):
                raise ProblemError(f"{self.path}: inputs() gives other data for the same seed: {name!r} differs. Draw from a generator made from `seed` alone")

    def make(self, request):
        """Makes an entry of a pool and puts it into shared memory."""
        start = time.monotonic()
        if request.get("only"):
            self.drop(request)
        checks = request.get("strict", False) or request["size"] not in self.checked
        made = self.inputs(request)
        storages = self.input_storages(request, made, checks)
        if request.get("strict"):
            self.check_same_again(request, storages)
        right = self.expected(request, made, storages, checks)
        self.checked.add(request["size"])
        key = (request["pool"], request["entry"])
        self.entries[key] = {"inputs": storages, "expected": right, "specs": {s["name"]: s for s in request["tensors"]},
                             "torch": self.uses_torch(made)}  # fmt: skip
        del made
        made_seconds = time.monotonic() - start
        reply = self.stage(request)
        reply["make_seconds"] = made_seconds
        return reply

    def stage(self, request):
        """Puts an entry that was made before into shared memory."""
        start = time.monotonic()
        entry = self.entries.get((request["pool"], request["entry"]))
        if entry is None:
            return error_reply("closed", f"entry {request['entry']} of {request['pool']} is no longer there")
        parts = self.memory.put(list(entry["inputs"].items()) + list(entry["expected"].items()), request["offset"])
        count = len(entry["inputs"])
        return {"inputs": parts[:count], "expected": parts[count:], "stage_seconds": time.monotonic() - start}

    def drop(self, request):
        self.entries = {key: entry for key, entry in self.entries.items() if key[0] != request["pool"]}
        return {}

    # check(got, expected) of the problem.

    def check(self, request):
        """Outputs of calls, one after another in shared memory, by the problem's own check."""
        import pawl_tensors

        verdicts, lenient = [], []
        for call in request["calls"]:
            entry = self.entries.get((call["pool"], call["entry"]))
            if entry is None:
                return error_reply("closed", f"entry {call['entry']} of {call['pool']} is no longer there")
            got = {}
            for part in call["outputs"]:
                got[part["tensor"]] = self.memory.get(part["offset"], part["bytes"], pawl_tensors.STORAGE[entry["specs"][part["tensor"]]["type"]])
            verdicts.append(self.verdict(entry, got))
            if request.get("self_test") and not lenient:
                lenient = [what for what, wrong in corruptions(entry) if self.verdict(entry, wrong) == ""]
        return {"verdicts": verdicts, "lenient": lenient}

    def verdict(self, entry, got):
        """What check() says is wrong with outputs, in one line; "" where they are right."""
        values = [self.values(entry, storages) for storages in (got, entry["expected"])]
        self.phase("check()")
        try:
            with self.inference():
                result = self.names["check"](*values)
        except AssertionError as error:
            return " ".join(str(error).split()) or location(self.path, error)
        except BaseException as error:
            if is_out_of_memory(error):
                raise
            raise ProblemError(location(self.path, error)) from None
        if result is None or result is True or (hasattr(result, "item") and bool(result)):
            return ""
        return result if isinstance(result, str) and result else "check() says that it is wrong"

    def values(self, entry, storages):
        import pawl_tensors

        if not entry["torch"]:
            return {name: pawl_tensors.decode(storage, entry["specs"][name]).copy() for name, storage in storages.items()}
        torch = sys.modules["torch"]
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return {name: pawl_tensors.tensor_from(torch, storage.copy(), entry["specs"][name]).to(device) for name, storage in storages.items()}

    # The baseline.

    def side(self, request):
        """The function that is timed, and GPU tensors to call it with."""
        made = self.inputs(request)
        storages = self.input_storages(request, made, False)
        torch = sys.modules.get("torch")
        refusal = ProblemError if self.has("baseline") else NoBaseline
        if torch is None or not torch.cuda.is_available():
            raise refusal("there is no baseline: PyTorch with CUDA is not installed here")
        if not self.uses_torch(made):
            raise refusal(f"there is no baseline: {self.path} computes with NumPy arrays, which no GPU does")
        given = self.arguments(request, made, storages)
        return self.names.get("baseline", self.names["reference"]), given

    def time_baseline(self, request):
        import pawl_baseline

        compute, given = self.side(request)
        self.phase(f"baseline() at size {request['size']}")
        return self._guard(lambda: pawl_baseline.time_problem(sys.modules["torch"], compute, given, request))

    def time_beside(self, request):
        import pawl_baseline

        compute, given = self.side(request)
        self.phase(f"baseline() at size {request['size']}")
        return self._guard(lambda: pawl_baseline.compare_problem(sys.modules["torch"], compute, given, request))

    def answer(self, request):
        handlers = {"make": self.make, "stage": self.stage, "drop": self.drop, "check": self.check,
                    "baseline": self.time_baseline, "beside": self.time_beside}  # fmt: skip
        try:
            return handlers[request["do"]](request)
        except ProblemError as error:
            return error_reply(error.kind, error)
        except BaseException as error:
            if is_out_of_memory(error):
                return error_reply("memory", f"{self.path}: out of memory: {error}")
            return error_reply("machine", f"{type(error).__name__}: {error}")
        finally:
            gc.collect(0)
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_initialized():
                torch.cuda.empty_cache()  # the candidate's runner needs it


def scaled(made, request):
    """The same inputs with the floats that kernel.toml leaves to problem.py times the request's magnitude."""
    import numpy as np
    import pawl_tensors

    specs = {spec["name"]: spec for spec in request["tensors"]}
    result = dict(made)
    for name, value in made.items():
        spec = specs.get(name, {})
        if spec.get("type") not in pawl_tensors.FLOATS or spec.get("fill", "problem") != "problem":
            continue
        if pawl_tensors.is_torch(value):
            if value.is_floating_point():
                result[name] = (value.detach().to(dtype=sys.modules["torch"].float64) * request["magnitude"]).to(value.dtype)
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            with np.errstate(over="ignore"):
                result[name] = (value * np.float64(request["magnitude"])).astype(value.dtype)
    return result


def corruptions(entry):
    """Outputs that are wrong: what check() must not let pass. Those that happen to be right are left out."""
    import numpy as np
    import pawl_tensors

    for name, right in entry["expected"].items():
        spec = entry["specs"][name]
        values = pawl_tensors.decode(right, spec).reshape(-1)
        tail = values.copy()
        tail[-max(1, tail.size // 8) :] = 0
        wrongs = [("all zeros", np.zeros_like(values)), ("the right values in the wrong places", np.roll(values, 1)),
                  ("zeros in the last eighth", tail)]  # fmt: skip
        if spec["type"] in pawl_tensors.FLOATS:
            wrongs += [("all values 1/16 too small", values * (15 / 16)), ("all values 1/16 too large", values * (17 / 16))]
        for what, wrong in wrongs:
            storage = pawl_tensors.encode(wrong, spec["type"])
            if not np.array_equal(storage, right):
                yield f"{name}: {what}", {**entry["expected"], name: storage}


def problem_process(request, pipe, memory_fd):
    """Of the forked process: never returns."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 1)
    code = 1
    try:
        gc.freeze()
        report = lambda text: pipe.write({"phase": text})  # noqa: E731
        try:
            problem = Problem(request["path"], request["source"], SharedMemory(memory_fd), report, request.get("file"))
        except ProblemError as error:
            pipe.write(error_reply(error.kind, error))
        else:
            torch = sys.modules.get("torch")
            pipe.write({"check": problem.has("check"), "baseline": problem.has("baseline"), "torch": torch.__version__ if torch else ""})
            while True:
                pipe.write(problem.answer(pipe.read()))
        code = 0
    except EOFError:
        code = 0
    except BaseException as error:
        sys.stderr.write(f"pawl_problem: {type(error).__name__}: {error}\n")
    finally:
        os._exit(code)


def script_process(argv, folder, files, unwanted):
    """Of the forked process: runs a script as `python3 SCRIPT` would, and never returns."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_DUMPABLE, 1)
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
        for fd in unwanted:
            os.close(fd)
        sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w", closefd=False), open(2, "w", closefd=False)
        gc.freeze()
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SCRIPT_FILE, SCRIPT_FILE))
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        if isinstance(error.code, str):
            sys.stderr.write(f"{error.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code & 0xFF)


# The server.


def prctl(option, value):
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # another system than Linux


def descendants():
    """Processes whose parent this one is, those that outlived theirs included."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            if entry.isdigit():
                with open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == os.getpid():
                        found.append(int(entry))
        except (OSError, IndexError, ValueError):
            continue
    return found


def resident_bytes(pid):
    """Of its own, without what it shares; 0 where that can't be read."""
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except (OSError, IndexError, ValueError):
        pass
    return 0


def write_files(folder, files):
    for file in files:
        path = os.path.join(folder, file["path"])
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as written:
            written.write(base64.b64decode(file["base64"]))


class Server:
    def __init__(self, worker, memory_fd, memory_limit):
        self.worker, self.memory_fd, self.memory_limit = worker, memory_fd, memory_limit
        self.pid, self.pipe, self.socket, self.phase, self.path = None, None, None, "", ""
        self.folder = None  # of problem.py and the files beside it

    def close(self):
        """Ends the problem's process and everything that it started."""
        if self.pid is not None:
            self.socket.close()
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
        self.end_others()
        if self.folder is not None:
            for place, _, _ in os.walk(self.folder.name):
                os.chmod(place, 0o700)
            self.folder.cleanup()
            self.folder = None

    def lay_out(self, request):
        """Writes problem.py and the files beside it into a folder of their own, and takes the right to write away."""
        self.folder = tempfile.TemporaryDirectory(prefix="problem-", dir=os.path.dirname(os.path.abspath(__file__)))
        name = os.path.basename(request["path"])
        source = {"path": name, "base64": base64.b64encode(request["source"].encode())}
        write_files(self.folder.name, [source, *request.pop("files")])
        for place, _, files in os.walk(self.folder.name, topdown=False):
            for file in files:
                os.chmod(os.path.join(place, file), 0o444)
            os.chmod(place, 0o555)
        request["file"] = os.path.join(self.folder.name, name)

    def end_others(self):
        """Ends every process that is left but the problem's."""
        left = [pid for pid in descendants() if pid != self.pid]
        while left:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            left = [pid for pid in descendants() if pid != self.pid]

    def open(self, request):
        self.close()
        here, there = socket.socketpair()
        self.path = request["path"]
        if request.get("files"):
            self.lay_out(request)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            here.close()
            os.close(self.worker.read_fd)
            os.close(self.worker.write_fd)
            problem_process(request, Pipe(there.fileno(), there.fileno()), self.memory_fd)
        there.close()
        self.pid, self.socket, self.phase = pid, here, "its start"
        self.pipe = Pipe(here.fileno(), here.fileno())
        reply = self.receive(request)
        if "error" in reply:
            self.close()
        return reply

    def script(self, request):
        """Runs a script to its end in a fresh folder with its files; the problem that is open stays unless `close` says otherwise."""
        if request.get("close"):
            self.close()
        with tempfile.TemporaryDirectory(prefix="script-", dir=os.path.dirname(os.path.abspath(__file__))) as folder:
            write_files(folder, request["files"])
            with tempfile.TemporaryFile(dir=folder) as asked, tempfile.TemporaryFile(dir=folder) as out, tempfile.TemporaryFile(dir=folder) as err:
                asked.write(request["input"].encode())
                asked.seek(0)
                reply = self.run_script(request, folder, (asked, out, err))
                self.end_others()
                out.seek(0)
                err.seek(max(0, err.seek(0, os.SEEK_END) - SCRIPT_OUTPUT))
                return {**reply, "out": out.read(SCRIPT_OUTPUT).decode(errors="replace"), "err": err.read().decode(errors="replace")}

    def run_script(self, request, folder, files):
        limit, start, timed_out = request.get("seconds", 60), time.monotonic(), False
        unwanted = [self.worker.read_fd, self.worker.write_fd, self.memory_fd] + ([self.socket.fileno()] if self.pid is not None else [])
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            script_process(request["argv"], folder, files, unwanted)
        ended, status = os.waitpid(pid, os.WNOHANG)
        while ended == 0:
            timed_out = time.monotonic() - start > limit
            if timed_out or resident_bytes(pid) > self.memory_limit:
                os.kill(pid, signal.SIGKILL)
                ended, status = os.waitpid(pid, 0)
            else:
                time.sleep(SCRIPT_LOOK_SECONDS)
                ended, status = os.waitpid(pid, os.WNOHANG)
        how = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
        return {**how, "timed_out": int(timed_out), "took": time.monotonic() - start}

    def receive(self, request):
        """The reply of the problem's process, or what became of it."""
        limit = request.get("seconds", 60)
        until = time.monotonic() + limit
        while True:
            ready, _, _ = select.select([self.socket], [], [], LOOK_SECONDS)
            if ready:
                try:
                    message = self.pipe.read()
                except (EOFError, OSError):
                    return self.died()
                if set(message) != {"phase"}:
                    return message
                self.phase = message["phase"]
                continue
            if time.monotonic() > until:
                self.close()
                return error_reply("problem", f"{self.path}: {self.phase} did not end within {limit:g} s")
            if resident_bytes(self.pid) > self.memory_limit:
                self.close()
                return error_reply("problem", f"{self.path}: {self.phase} took more than {self.memory_limit >> 20} MiB of main memory")

    def died(self):
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        self.socket.close()
        self.close()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return error_reply("problem", f"{self.path}: its process died of signal {number} ({signal.strsignal(number)}) in {self.phase}")
        return error_reply("problem", f"{self.path}: its process ended in {self.phase}")

    def answer(self, request):
        if request["do"] == "open":
            return self.open(request)
        if request["do"] == "script":
            return self.script(request)
        if self.pid is None:
            return error_reply("closed", "no problem.py is open")
        self.pipe.write(request)
        return self.receive(request)

    def run(self):
        while True:
            try:
                request = self.worker.read()
            except EOFError:
                break
            self.worker.write(self.answer(request))
        self.close()


def main(arguments):
    """pawl_problem.py SHARED_MEMORY_FD MEMORY_LIMIT"""
    # What a problem prints must not get between the replies.
    worker = Pipe(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # a problem's process must not look into this one
    start = time.monotonic()
    try:
        import numpy
        import pawl_baseline  # noqa: F401  # now: what runs later may write to its folder
        import pawl_tensors  # noqa: F401
    except ImportError as error:
        worker.write(error_reply("machine", f"problem.py needs NumPy, which {sys.executable} lacks ({error}): pip install numpy, or set PAWL_PYTHON to an interpreter that has it"))
        return
    # What runs later can write to this folder: nothing is imported from there any more.
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != own]
    torch_version = ""
    try:
        import torch

        torch_version = torch.__version__
    except ImportError:
        pass
    worker.write({"numpy": numpy.__version__, "torch": torch_version, "seconds": time.monotonic() - start})
    Server(worker, int(arguments[0]), int(arguments[1])).run()


if __name__ == "__main__":
    main(sys.argv[1:])
