#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks tests/nt_names.list, the names of Windows that NDK consumers use.

    check-nt-names.py

 - each name is provided by the header it is listed with, that header alone being included
 - each function links against the shared library
 - each name is used by a test: src/{nt,ndis,wsk}/*_test*, tests/nt, tests/headers
 - each Windows name that the shared library exports is listed

Source and build directory come from SOFTNDK_SOURCE_DIR and SOFTNDK_BUILD_DIR, the compiler from CC.
Prints what is wrong, one line each, then `N names, M wrong`; exit status 1 if any.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from checks import BUILD, ROOT
CC = os.environ.get("CC", "cc")
FLAGS = ["-std=gnu11", "-fms-extensions", "-fshort-wchar", "-Wall", "-Werror", "-Wno-unused-value"]
INCLUDES = [f"-I{ROOT}/include/{d}" for d in ("softndk", "ndk", "nt")]
KINDS = {"function", "call", "macro", "type", "value", "header", "later"}

wrong = 0


def complain(text):
    global wrong
    wrong += 1
    print(f"check-nt-names: {text}")


def read_list():
    """(kind, header, name) of each name."""
    names = []
    for number, line in enumerate((ROOT / "tests/nt_names.list").read_text().splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if len(words) < 3 or words[0] not in KINDS:
            complain(f"nt_names.list:{number}: want `kind header names...`")
            continue
        names += [(words[0], words[1], word) for word in words[2:]]
    seen = set()
    for _, _, name in names:
        if name in seen:
            complain(f"{name}: listed twice")
        seen.add(name)
    return names


def compile_c(text, *more):
    """What the compiler says against the text, empty when nothing."""
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch, "one.c")
        source.write_text(text)
        done = subprocess.run([CC, *FLAGS, *INCLUDES, str(source), "-o", f"{scratch}/one", *more],
                              capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""


def probe(kind, name):
    """A line of C that compiles only when the name is what the list says."""
    line = {
        "function": f"extern __typeof__({name}) {name}; void *at_{name} = (void *)&{name};",
        "type": f"typedef {name} *pointer_to_{name};",
        "value": f"enum {{ value_{name} = {name} }};",
        "macro": f"#ifndef {name}\n#error {name} is no macro\n#endif",
    }
    if kind != "call":
        return line[kind]
    # A macro, or an inline function whose address can be taken.
    return f"#ifndef {name}\nvoid *at_{name} = (void *)&{name};\n#endif"


def check_headers(names):
    by_header = {}
    for kind, header, name in names:
        if kind == "header":
            if not any((ROOT / "include" / d / name).exists() for d in ("nt", "ndk")):
                complain(f"{name}: there is no such header")
        elif kind != "later":
            by_header.setdefault(header, []).append((kind, name))
    link = [f"-L{BUILD}/lib", f"-Wl,-rpath,{BUILD}/lib", "-lsoftndk"]
    sanitize = re.search(r"^SOFTNDK_SANITIZE:\w+=(.+)$", (BUILD / "CMakeCache.txt").read_text(),
                         re.MULTILINE)
    if sanitize:
        link.append(f"-fsanitize={sanitize.group(1)}")
    for header, entries in sorted(by_header.items()):
        begin = f"#include <{header}>\n"
        whole = begin + "\n".join(probe(*e) for e in entries) + "\nint main(void) { return 0; }\n"
        if not compile_c(whole, *link):
            continue
        before = wrong
        for entry in entries:  # one of them, at least: which?
            text = begin + probe(*entry) + "\nint main(void) { return 0; }\n"
            said = compile_c(text, *link)
            if said:
                complain(f"{entry[1]}: not a {entry[0]} of {header}: {said.splitlines()[0]}")
        if wrong == before:
            complain(f"{header}: all names together do not compile")


def check_tests(names):
    text = ""
    for pattern in ("src/nt/*_test*", "src/ndis/*_test*", "src/wsk/*_test*", "tests/nt/*.c",
                    "tests/headers/*"):
        for path in sorted(ROOT.glob(pattern)):
            text += path.read_text(encoding="utf-8")
    used = set(re.findall(r"\w+", text))
    for kind, _, name in names:
        if kind not in ("header", "later") and name not in used:
            complain(f"{name}: no test uses it")


def check_exports(names):
    listed = {name for _, _, name in names}
    done = subprocess.run(["nm", "-D", "--defined-only", f"{BUILD}/lib/libsoftndk.so"],
                          capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        name = line.split()[-1].split("@")[0]
        if not re.match(r"softndk_|SOFTNDK_|_|Wsk", name) and name not in listed:
            complain(f"{name}: exported, and not listed")


def main():
    names = read_list()
    check_headers(names)
    check_tests(names)
    check_exports(names)
    print(f"{len(names)} names, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
