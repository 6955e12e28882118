"""Hatchling's hook for `pip install .`: has the Makefile make the module for the interpreter that asks, and adds it to the wheel.

What make takes from its command line it takes from the environment too: BACKEND=cpu pip install . (BACKEND, CUDA_ARCHS, NCCL,
JOBS, BUILD, MPI_HOME and the like; docs/building.md).
"""
import os
import subprocess
import sys
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Passed on make's command line: from the environment ?= would take them, but := would not.
GIVEN = ["BACKEND", "BUILD", "CUDA_ARCHS", "JOBS", "NCCL", "STRICT"]


class CustomBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        settings = [f"{name}={os.environ[name]}" for name in GIVEN if name in os.environ]
        made = subprocess.run(["make", "--no-print-directory", "python", f"PYTHON={sys.executable}", *settings],
                              cwd=self.root, stdout=sys.stderr)
        if made.returncode != 0:
            raise SystemExit("maki: 'make python' has failed; its lines above say why (pip install --verbose . shows them)")
        name = "_core" + sysconfig.get_config_var("EXT_SUFFIX")
        module = os.path.join(self.root, os.environ.get("BUILD", "build"), "python", name)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"][module] = "maki/" + name
