"""Prints what make has to know of this interpreter and of its nanobind (rules.mk)."""
import os
import sys
import sysconfig

import nanobind

root = os.path.dirname(nanobind.include_dir())
headers = sysconfig.get_path("include")
if not os.path.exists(os.path.join(headers, "Python.h")):
    sys.exit(f"{headers} has no Python.h")
folders = [headers, nanobind.include_dir(), os.path.join(root, "ext", "robin_map", "include")]
print(" ".join("-isystem " + folder for folder in folders))
print("file=_core" + sysconfig.get_config_var("EXT_SUFFIX"))
print("root=" + root)
print(f"tag={sysconfig.get_config_var('SOABI')}-nanobind-{nanobind.__version__}-{headers}")
