# SPDX-License-Identifier: MIT
"""What the check-*.py have in common: where the sources and the build are, the report that each
prints, and a way to each other, whose names are no Python names."""

import importlib.util
import os
import pathlib
import sys

ROOT = pathlib.Path(os.environ.get("SOFTNDK_SOURCE_DIR") or pathlib.Path(__file__).parents[1])
BUILD = pathlib.Path(os.environ.get("SOFTNDK_BUILD_DIR") or ROOT / "build")


class Report:
    """Counts, and prints a line for what is wrong."""

    def __init__(self):
        self.checks = 0
        self.failed = 0

    def check(self, good, text):
        self.checks += 1
        if not good:
            self.failed += 1
            print(f"FAIL {text}")

    def equal(self, have, want, text):
        self.check(have == want, f"{text}: have {have!r}, need {want!r}")

    def close(self):
        """The last line; the exit status."""
        print(f"{self.checks} checks, {self.failed} failed")
        return 1 if self.failed else 0


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def load(name):
    """The module that tests/NAME is."""
    path = pathlib.Path(__file__).with_name(name)
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
