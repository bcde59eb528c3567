#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Proves tests/status_tests/*.list: runs the tests named there and looks at what calls answer.

    witness.py [--build DIRECTORY] [--only TEXT] [-j N]

check-status-tests.py reads the tests' text; here a copy of the tree is built in which every slot
of every dispatch table, every completion of a request and every close completion prints what it
gives: function, status, inline or async. Each line of the lists that names a test must have been
seen while that test ran. The copy and its build are in DIRECTORY (build-witness).

A test program that skips itself (status 77), and a test that does, leaves its lines out, with a
notice. Prints what was not seen, one line each, then `N checks, M failed`; status 1 if any failed.
Takes some minutes, so it is no part of `make check`; `make witness` runs it.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from checks import load

SKIPPED = 77

WITNESS_H = """\
#ifndef WITNESS_H
#define WITNESS_H
#include <ntdef.h>
#include <stdio.h>
#include "base/status.h"
/* One write a line, so that lines of several threads do not mix. */
static inline void witness(const char *function, NTSTATUS status, const char *half)
{
    const char *name = softndk_status_name(status);
    char line[160];

    snprintf(line, sizeof line, "WITNESS %s %s %s\\n", function, name ? name : "?", half);
    fflush(stdout);
    fputs(line, stdout);
    fflush(stdout);
}
#endif
"""

# Where callbacks are called: (file, what stands there, what comes before its last statement).
CALLBACKS = [
    ("src/provider/request.c",
     "static void request_call(struct request *request)\n{\n    KIRQL before = callback_enter();\n",
     '    witness(call_name(request->call), request->status, "async");\n'),
    ("src/provider/object.c",
     "static void object_close_call(struct object *object)\n{\n"
     "    KIRQL before = callback_enter();\n",
     '    witness("NdkCloseObject", STATUS_SUCCESS, "async");\n'),
    ("src/provider/qp_ops.c",
     "            const struct conn_completion *c = &list[i];\n",
     "            static const char *const kinds[] = {\n"
     '                [CONN_OP_RECEIVE] = "receive", [CONN_OP_SEND] = "send",\n'
     '                [CONN_OP_WRITE] = "write", [CONN_OP_READ] = "read",\n'
     '                [CONN_OP_BIND] = "bind", [CONN_OP_INVALIDATE] = "invalidate",\n'
     '                [CONN_OP_FAST_REGISTER] = "fast-register",\n'
     "            };\n"
     '            witness("WorkCompletion", c->status, kinds[c->op]);\n'),
]


status_tests = load("check-status-tests.py")
header_statuses = status_tests.header_statuses
provider_statuses = status_tests.provider_statuses


# ---- The copy ------------------------------------------------------------------------------------


def copy_tree(tree):
    """Only what differs is written, so that a second run builds little."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {name: (ROOT / name).read_bytes() for name in names.split("\0")
             if name and (ROOT / name).is_file()}
    instrument(texts)
    for path in [p for p in tree.rglob("*") if p.is_file()] if tree.exists() else []:
        if str(path.relative_to(tree)) not in texts:
            path.unlink()
    for name, text in texts.items():
        path = tree / name
        if not path.exists() or path.read_bytes() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
            if (ROOT / name).exists():
                shutil.copymode(ROOT / name, path)


def signatures():
    """Type of a slot's function -> its parameters, without annotations; those that give a status."""
    text = "".join(p.read_text() for p in sorted((ROOT / "include/ndk").glob("ndkpi*.h")))
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    found = {}
    for head, kind, parameters in re.findall(
            r"typedef\b([^;]*?)\(\s*\*\s*(NDK_FN_\w+)\s*\)\((.*?)\);", text, re.DOTALL):
        if "NTSTATUS" not in head.split(")")[-1]:
            continue
        parameters = re.sub(r"(?<!\w)_[A-Z]\w*_(\([^()]*\))?", "", parameters)
        found[kind] = [" ".join(p.split()) for p in parameters.split(",")]
    return found


def instrument(texts):
    """Puts a speaking function before each function of the dispatch tables, and words into the
    places that call completions."""
    kinds, names = provider_statuses.slot_types(), {}
    for function in header_statuses.read_table()[0].values():
        names[function.type] = function.name
    parameters = signatures()
    wrapped = 0
    tables = re.compile(r"^(?:static )?const NDK_(\w+)_DISPATCH \w+ = \{(.*?)^\};",
                        re.DOTALL | re.MULTILINE)
    for file in [n for n in texts if re.fullmatch(r"src/provider/\w+\.c", n)]:
        done = set()

        def speak(table):
            before, body = "", table[0]
            for slot, target in re.findall(r"\.(\w+) = (\w+)", table[2]):
                kind = kinds[(table[1], slot)]
                if kind not in parameters:
                    continue
                arguments = ", ".join(re.search(r"\w+$", p)[0] for p in parameters[kind])
                if target not in done:
                    before += (
                        f"static NTSTATUS witness_{target}({', '.join(parameters[kind])})\n{{\n"
                        f"    NTSTATUS status = {target}({arguments});\n"
                        f'    witness("{names[kind]}", status, "inline");\n'
                        f"    return status;\n}}\n")
                done.add(target)
                body = re.sub(rf"\.{slot} = {target}\b", f".{slot} = witness_{target}", body)
            return before + body

        text = tables.sub(speak, texts[file].decode())
        if done:
            texts[file] = ('#include "base/witness.h"\n' + text).encode()
        wrapped += len(done)
    for file, place, words in CALLBACKS:
        text = texts[file].decode()
        if place not in text:
            sys.exit(f"witness: {file} has changed: see CALLBACKS")
        text = text.replace(place, place + words)
        texts[file] = ('#include "base/witness.h"\n' + text).encode()
    texts["src/base/witness.h"] = WITNESS_H.encode()
    if wrapped < 50:
        sys.exit(f"witness: only {wrapped} slots found")


# ---- The runs ------------------------------------------------------------------------------------


def run(program, tree, build):
    environment = dict(os.environ, SOFTNDK_SOURCE_DIR=str(tree), SOFTNDK_BUILD_DIR=str(build))
    done = subprocess.run([build / "bin/tests" / program], capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL, timeout=900,
                          env=environment, check=False)
    return done.returncode, done.stdout + done.stderr


def seen_in(output):
    """test -> {(function, status, half)}, and the tests that were skipped."""
    seen, skipped, test = collections.defaultdict(set), set(), None
    for line in output.splitlines():
        begins = re.search(r"\[ RUN      \] (\w+)", line)
        if begins:
            test = begins[1]
        said = re.search(r"WITNESS (\w+) (\w+) ([\w-]+)", line)
        if said:
            seen[test].add(said.groups())
        left_out = re.search(r"\[  SKIPPED \] (\w+)", line)
        if left_out:
            skipped.add(left_out[1])
    return seen, skipped


def check_program(report, program, lines, outcome):
    status, output = outcome
    if status == SKIPPED:
        print(f"notice: {program} is skipped: {output.strip().splitlines()[-1]}")
        return
    report.check(status == 0, f"{program}: status {status}")
    seen, skipped = seen_in(output)
    for key, line in lines:
        test = line.test.split(":")[1]
        if test in skipped:
            print(f"notice: {line.test} is skipped")
        else:
            report.check(key in seen[test], f"{line.where}: {' '.join(key)} was not seen in "
                                            f"{line.test}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=ROOT / "build-witness", type=pathlib.Path)
    parser.add_argument("--only", default="", help="only test programs whose name has this")
    parser.add_argument("-j", type=int, default=2, help="test programs at a time")
    arguments = parser.parse_args()
    tree, build = arguments.build / "tree", arguments.build / "build"

    report = header_statuses.Report()
    by_program = collections.defaultdict(list)
    for key, line in status_tests.read_lists(report).items():
        if line.test and arguments.only in line.test.split(":")[0]:
            by_program[line.test.split(":")[0]].append((key, line))
    files = status_tests.programs(report)
    targets = {}
    for program in by_program:
        parts = files[program].relative_to(ROOT).with_suffix("").parts
        targets[program] = "_".join(parts[1:])

    copy_tree(tree)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    if not (build / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "-S", tree, "-B", build, *generator], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--parallel", str(arguments.j), "--target",
                    "programs", *targets.values()], check=True, stdout=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(arguments.j) as pool:
        outcomes = dict(zip(targets, pool.map(lambda t: run(t, tree, build), targets.values())))
    for program in sorted(by_program):
        check_program(report, program, by_program[program], outcomes[program])
    print(f"{report.checks} checks, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
