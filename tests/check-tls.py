#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Can libsoftndk.so be loaded by a program that runs already?

Its thread-local variables are reached without a call (-ftls-model=initial-exec), so they must fit
into what the C library keeps for libraries that come later: 1664 octets, for all of them together.
A program that is linked with the library does not notice.

The build directory is SOFTNDK_BUILD_DIR or build/. Prints what is wrong, one line each, then
`N checks, M failed`; exit status 1 if any failed, 77 with a reason when nothing can be checked.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from checks import BUILD, Report, skip
LIBRARY = BUILD / "lib/libsoftndk.so"
MOST = 512 # what is larger goes to os_thread_memory()


def main():
    if not shutil.which("readelf"):
        skip("readelf is missing (binutils)")
    if not LIBRARY.exists():
        skip(f"{LIBRARY} is not built")
    report = Report()
    headers = subprocess.run(["readelf", "--wide", "--segments", LIBRARY], check=True, text=True,
                             stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"}).stdout
    tls = re.search(r"^  TLS +0x\w+ 0x\w+ 0x\w+ 0x\w+ (0x\w+)", headers, re.MULTILINE)
    report.check(tls is not None, f"{LIBRARY.name}: no thread-local variables were found")
    octets = int(tls[1], 16) if tls else 0
    report.check(octets <= MOST, f"{LIBRARY.name}: thread-local variables: have {octets} octets, "
                 f"need at most {MOST}")
    try:
        loaded = ctypes.CDLL(str(LIBRARY))
        loaded.softndk_version_string.restype = ctypes.c_char_p
        report.check(loaded.softndk_version_string() != b"", "the version is empty")
    except OSError as error:
        report.check(False, f"{LIBRARY.name} cannot be loaded: {error}")
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
