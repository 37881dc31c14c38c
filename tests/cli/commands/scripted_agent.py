#!/usr/bin/env python3
"""An agent without a model: connects to the MCP server that its .mcp.json names and does what its arguments say, in order.
  propose VARIABLE VALUE   proposes it and waits for the verdict
  all                      proposes changes, what the engine ranks first, until the proposals are used up
  look                     asks for the situation
  reconnect COUNT          connects so many times and prints by how many kB the address space of `pawl agent` grew
  environment              prints the variables that begin with PAWL_
  orphan FILE              leaves a process behind that has its output, writes its id to FILE, and kills its keeper
  stop                     stops its keeper
  say TEXT                 prints it
  flood                    prints without an end
  hang                     does nothing, and takes no TERM
  daemon FILE              leaves a process behind in a session of its own that has FILE open
  fork                     starts processes without an end
  fail                     ends with code 7
The last argument is the prompt."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time


class Pawl:
    def __init__(self):
        server = json.load(open(".mcp.json"))["mcpServers"]["pawl"]
        self.process = subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.id = 0
        self.refused = ""  # what the last refused call was told
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "scripted", "version": "1"}})

    def ask(self, method, params):
        while True:
            self.id += 1
            print(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}), file=self.process.stdin, flush=True)
            message = {}
            while message.get("id") != self.id:
                message = json.loads(self.process.stdout.readline())
            if "error" not in message:
                return message["result"]
            time.sleep(0.2)  # too many calls

    def call(self, tool, **arguments):
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            self.refused = result["content"][0]["text"]
            print(json.dumps({"refused": self.refused}), flush=True)
            return None
        return result["structuredContent"]

    def propose(self, **change):
        proposed = self.call("propose", why="scripted", **change)
        while proposed:
            answer = self.call("wait", proposal=proposed["proposal"], timeoutSeconds=20)
            if answer is None or answer["done"]:
                print(json.dumps(answer), flush=True)
                return answer
        return None


def candidates(situation):
    """Changes of the best: those that the engine ranks, and then every other value of every variable."""
    for each in situation["engineWouldTry"]:
        if "fromIteration" not in each and (match := re.match(r"(\w+) .*→(-?\d+)$", each["change"])):
            yield match[1], int(match[2])
    for variable in situation["edit"]["variables"]:
        for value in variable["values"].split():
            if int(value.split("=")[0]) != variable["now"]:
                yield variable["name"], int(value.split("=")[0])


def reconnect(count):
    """To the socket that `pawl mcp` would pass everything on to, with a request each time."""
    path = json.load(open(".mcp.json"))["mcpServers"]["pawl"]["args"][-1]
    pawl = open(f"/proc/{os.getppid()}/stat").read().rsplit(") ")[1].split()[1]
    size = lambda: int(re.search(r"VmSize:\s*(\d+)", open(f"/proc/{pawl}/status").read())[1])
    before = 0
    for i in range(count):
        while True:  # a refused connection is closed
            with socket.socket(socket.AF_UNIX) as pipe:
                pipe.connect(path)
                try:
                    pipe.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
                    if pipe.recv(100):
                        break
                except OSError:
                    pass
        before = before or (size() if i == 50 else 0)
    print(json.dumps({"grownKb": size() - before}), flush=True)


def main():
    words = sys.argv[1:-1]
    assert "Make the kernel of" in sys.argv[-1], sys.argv[-1]
    while words:
        word = words.pop(0)
        if word == "propose":
            Pawl().propose(variable=words.pop(0), value=int(words.pop(0)))
        elif word == "all":
            pawl = Pawl()
            mine = int((re.search(r"agent-(\d+)", os.getcwd()) or ["", "1"])[1]) - 1  # others take another change
            refused = set()  # of this best
            best = None
            while situation := pawl.call("situation"):
                if situation["best"]["iteration"] != best:
                    best, refused = situation["best"]["iteration"], set()
                choices = [choice for choice in candidates(situation) if choice not in refused]
                if not choices:
                    break
                variable, value = choices[mine % min(3, len(choices))]
                if pawl.propose(variable=variable, value=value) is None:
                    refused.add((variable, value))
                print(json.dumps({"type": "turn.completed", "usage": {"input_tokens": 100, "output_tokens": 1}}), flush=True)
                if "used up" in pawl.refused:
                    break
        elif word == "look":
            Pawl().call("situation")
        elif word == "reconnect":
            reconnect(int(words.pop(0)))
        elif word == "environment":
            print(json.dumps({name: value for name, value in os.environ.items() if name.startswith("PAWL_")}), flush=True)
        elif word == "orphan":
            left = subprocess.Popen(["sleep", "60"], start_new_session=True)
            with open(words.pop(0), "w") as file:
                file.write(str(left.pid))
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        elif word == "stop":
            os.kill(os.getppid(), signal.SIGSTOP)
        elif word == "say":
            print(words.pop(0), flush=True)
        elif word == "flood":
            while True:
                sys.stdout.write("x" * 100_000 + "\n")
        elif word == "hang":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        elif word == "daemon":
            file = words.pop(0)
            subprocess.Popen(["sh", "-c", f"trap '' TERM HUP INT; exec 9>>{file}; setsid sh -c 'echo $$ >&9; sleep 1000' & sleep 0.3"],
                             start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while not os.path.exists(file) or not open(file).read().strip():
                time.sleep(0.01)
        elif word == "fork":
            while True:
                subprocess.Popen(["sleep", "1000"])
        elif word == "fail":
            sys.exit(7)


main()
