"""Compiler cache for projects that tests build in temporary folders."""

import shutil
import subprocess


def through_ccache(folder):
    """Variables by which CMake projects below `folder` are compiled through the user's ccache, also where HOME is another; none where there is no ccache."""
    if shutil.which("ccache") is None:
        return {}
    cache = subprocess.run(["ccache", "--get-config", "cache_dir"], check=True, capture_output=True, text=True).stdout.strip()
    return {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_DIR": cache, "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1"}
