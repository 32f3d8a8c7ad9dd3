"""The launchers that are compared: how each is called, and what the table's options are to it.

Debian 12's torchrun is 1.13.1 and doesn't start on its Python 3.11; tools/peers/torchrun_shim.py repairs the one
line that stops it and changes nothing else. A newer one, in a virtual environment, runs as it is.
"""
import os
import pwd
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PYTHON = "/usr/bin/python3"
SHIM = os.path.join(ROOT, "tools", "peers", "torchrun_shim.py")


class Muster:
    name = "muster"
    # It is what it is compared with that has a version.
    version = (99,)

    def __init__(self, binary, preload=""):
        """`preload`: a list of modules, and workers are forked from a Python that has imported them."""
        self.command = [binary, "run"]
        self.environment = {"PET_PRELOAD": preload} if preload else {}

    def options(self, words):
        return list(words)


class Torchrun:
    name = "torchrun"

    def __init__(self, python=PYTHON):
        said = subprocess.run([python, "-c", "import torch, torch.distributed.run; print(torch.__version__)"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if said.returncode != 0:
            raise LookupError("%s has no torchrun: %s" % (
                python, (said.stderr.decode().strip().splitlines() or ["?"])[-1]))
        self.text = said.stdout.decode().split()[-1]
        self.version = tuple(map(int, re.findall(r"\d+", self.text)[:2]))
        self.is_repaired = self.version < (2,)
        self.command = [python, SHIM] if self.is_repaired else [python, "-m", "torch.distributed.run"]
        # Its default is 5 s up to 2.2: each run would take that long.
        self.environment = {"PET_MONITOR_INTERVAL": "0.1"}

    def options(self, words):
        """1.13 knows the underscored spelling alone."""
        if self.version >= (2,):
            return list(words)
        return [re.sub(r"^--[\w-]+", lambda m: "--" + m[0][2:].replace("-", "_"), word) for word in words]

    def about(self):
        if self.is_repaired:
            return ("torchrun %s doesn't start on its own (it iterates over a flag in a way that Python 3.11 "
                    "has changed); compared is the one that tools/peers/torchrun_shim.py repairs" % self.text)
        return "torchrun %s, as it is" % self.text


def newest_python():
    """The Python of the newest torch, where `tools/setup.sh --with-torch` has put it; None: nowhere."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    folder = os.environ.get("MUSTER_TORCH") or os.path.join(home, ".cache", "muster", "torch")
    path = os.path.join(folder, "bin", "python")
    return path if os.access(path, os.X_OK) else None
