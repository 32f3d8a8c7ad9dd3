"""Which Pythons have PyTorch: Debian's, and the newest in the environment of `tools/setup.sh --with-torch`."""
import os
import pwd
import subprocess

DEBIAN = "/usr/bin/python3"
PROBE = "import torch.distributed as d; d.is_available() or 1/0"


def newest():
    """The interpreter of that environment; tests have no HOME."""
    home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
    folder = os.environ.get("MUSTER_TORCH") or os.path.join(home, ".cache", "muster", "torch")
    return os.path.join(folder, "bin", "python")


def why_not(python):
    """Why it can't run PyTorch; empty if it can."""
    if not os.access(python, os.X_OK):
        return "there is no %s (tools/setup.sh --with-torch makes one)" % python
    result = subprocess.run([python, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode == 0:
        return ""
    return "%s has no torch.distributed: %s" % (
        python, (result.stdout.decode().strip().splitlines() or ["?"])[-1])


class WithTorch:
    """Mixed into a test case: skips it where its Python has no PyTorch."""
    PYTHON = DEBIAN
    _reasons = {}

    def setUp(self):
        if self.PYTHON not in self._reasons:
            self._reasons[self.PYTHON] = why_not(self.PYTHON)
        if self._reasons[self.PYTHON]:
            self.skipTest(self._reasons[self.PYTHON])
        super().setUp()
        # The newest makes a folder for what it compiles, though nothing is compiled.
        self.environment.update(PYTHON_EXEC=self.PYTHON, GLOO_SOCKET_IFNAME="lo",
                                TORCHINDUCTOR_CACHE_DIR=os.path.join(self.work, "inductor"))
