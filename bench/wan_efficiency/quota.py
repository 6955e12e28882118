"""Fixed shares of processor time by control groups: each rank has one, in every run that is compared."""
import atexit
import os
import time

V1 = "/sys/fs/cgroup/cpu"
V2 = "/sys/fs/cgroup"
PERIOD = 10000  # microseconds: short, so that a rank that has used its share waits for milliseconds only


def version():
    """1 or 2; 0 where no quota can be set here."""
    if os.path.exists(f"{V1}/cgroup.procs"):
        return 1 if os.access(V1, os.W_OK) else 0
    if os.path.exists(f"{V2}/cgroup.controllers") and "cpu" in open(f"{V2}/cgroup.subtree_control").read():
        return 2 if os.access(V2, os.W_OK) else 0
    return 0


def why_not():
    if version():
        try:
            Groups([1.0]).remove()
            return ""
        except OSError as error:
            return f"a control group cannot be made ({error})"
    return "neither cgroup v1's cpu controller nor v2's is mounted and writable here"


class Groups:
    """One control group for each of `shares` (processors). Removed at the end, also of a failed run."""

    def __init__(self, shares):
        self.version = version()
        self.folder = f"{V1 if self.version == 1 else V2}/maki_bench_{os.getpid()}"
        self.paths = []
        atexit.register(self.remove)
        os.mkdir(self.folder)
        # Before all other work of the machine, so that this does not count.
        if self.version == 2:
            self._write(f"{self.folder}/cpu.weight", "10000")
            self._write(f"{self.folder}/cgroup.subtree_control", "+cpu")
        else:
            self._write(f"{self.folder}/cpu.shares", "262144")
        for i, share in enumerate(shares):
            path = f"{self.folder}/rank_{i}"
            os.mkdir(path)
            self.paths.append(path)
            quota = int(round(share * PERIOD))
            if self.version == 1:
                self._write(f"{path}/cpu.cfs_period_us", str(PERIOD))
                self._write(f"{path}/cpu.cfs_quota_us", str(quota))
            else:
                self._write(f"{path}/cpu.max", f"{quota} {PERIOD}")

    @staticmethod
    def _write(path, text):
        with open(path, "w") as file:
            file.write(text)

    def remove(self):
        for path in reversed(self.paths):
            self._remove(path)
        if os.path.isdir(self.folder):
            self._remove(self.folder)
        self.paths = []

    @staticmethod
    def _remove(path):
        for _ in range(100):  # the kernel takes a moment to forget processes that have ended
            try:
                os.rmdir(path)
                return
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.05)
        print(f"{path} could not be removed: processes are left in it")
