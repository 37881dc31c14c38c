"""A Slurm cluster of one node, of Debian's munge, slurmctld and slurmd, in a temporary folder and on ports of its own. Needs
root: slurmd starts jobs as their users."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun"]


def missing():
    """Why there can't be one here; empty: there can."""
    lacking = [program for program in PROGRAMS if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")]
    if lacking:
        return f"Slurm is not installed ({', '.join(lacking)}): apt-get install munge slurmctld slurmd slurm-client"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    def __init__(self, gpus):
        # The paths of sockets are short, and others must be able to go through the folder.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pawl-slurm-", dir="/tmp"))
        self.folder.chmod(0o711)
        for name in ["state", "spool", "gpu"]:
            (self.folder / name).mkdir()
        for number in range(gpus):  # Slurm counts files; a replay opens none
            (self.folder / "gpu" / f"gpu{number}").touch()
        self.node = socket.gethostname().split(".")[0]
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        (self.folder / "gres.conf").write_text(f"NodeName={self.node} Name=gpu Type=replay File={self.folder}/gpu/gpu[0-{gpus - 1}]\n")
        (self.folder / "slurm.conf").write_text(f"""
ClusterName=pawltest
SlurmctldHost={self.node}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/spool
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.pid
SlurmctldLogFile={self.folder}/slurmctld.log
SlurmdLogFile={self.folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
GresTypes=gpu
KillWait=30
MinJobAge=60
NodeName={self.node} NodeAddr=127.0.0.1 CPUs={2 * gpus} RealMemory=1000 Gres=gpu:replay:{gpus} State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=plain Nodes=ALL MaxTime=INFINITE State=UP
""")
        self.env = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        self.children = []
        self.start("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
                   f"--pid-file={self.folder}/munged.pid", f"--seed-file={self.folder}/munge.seed")
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.start_controller()
        self.start("slurmd", "-D")
        self.wait_for(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%t", check=False), "slurmd")

    def start(self, *command):
        log = open(self.folder / f"{command[0]}.out", "a")
        child = subprocess.Popen(command, stdout=log, stderr=log, env=self.env, start_new_session=True)
        self.children.append(child)
        return child

    def start_controller(self):
        self.controller = self.start("slurmctld", "-D")
        self.wait_for(lambda: "UP" in self.run("scontrol", "ping", check=False), "slurmctld")

    def wait_for(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                logs = "".join(file.read_text()[-1500:] for file in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))
                raise AssertionError(f"{what} did not start:\n{logs}")
            time.sleep(0.2)

    def run(self, *command, check=True):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=self.env)
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def jobs(self, state="RUNNING"):
        return [int(line) for line in self.run("squeue", "--noheader", f"--states={state}", "--format=%i").split()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run("scancel", "--user=root", check=False)
        end = time.monotonic() + 20
        while self.run("squeue", "--noheader", check=False).strip() and time.monotonic() < end:
            time.sleep(0.5)
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
