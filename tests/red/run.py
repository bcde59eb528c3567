#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the tests: each named breach must make the test that is listed for it fail.

    run.py [--build build-red] [-j N] [--timeout S] [--only TEXT] [--lists-only]

The lists are tests/red/*.list, a case a line: breach, test, and environment assignments if the
test needs any to reach the place; # begins a comment.

    iwarp-crc-unchecked  iwarp_mpa_test
    cq-lost-arm          integration_cq_test  SOFTNDK_PEND=always
    cq-lost-arm          conformance:CQ-031

A test `conformance:ARGUMENT[,ARGUMENT...]` is the program ndkconform with these arguments: cases,
topics, options.

First each test runs without a breach, once for each environment listed, and must pass. Then each
case runs with its breach and must fail: a status other than 0, a crash, or no end within a time
that is a multiple of what the run without a breach took (PATIENCE), at most the timeout. A test that survives its breach does not test what it claims to. Three more rules, so that
nothing is forgotten: every *_test.c of src/, tools/, tests/integration/, tests/sweep/, tests/spin/ and tests/attack/ and every
fuzz target (with its corpus) has a breach listed, every RED("name") of src/ and tools/ is listed, and every
listed name exists there.

A test that skips itself (status 77) without a breach leaves its cases out, with its reason.
Prints one line a case, with the number of the try that noticed it if that was not the first (such a
test should be made to notice it each time), and ends with `N passed, N failed`; status 1 if any failed.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

SKIPPED = 77
KIT = "conformance:"  # a test of this kind is cases of ndkconform
TRIES = 3  # runs of a test with its breach before it counts as surviving
PATIENCE = 8  # times what a test took without a breach, at least
PATIENCE_MIN = 12.0  # seconds: then it waits for what never comes
ROOT = pathlib.Path(__file__).resolve().parents[2]

Case = collections.namedtuple("Case", "breach test environment where")
Outcome = collections.namedtuple("Outcome", "status seconds output tries", defaults=[1])

# The sources that speak about RED() instead of using it.
ABOUT_RED = {ROOT / "src/base/red.h", ROOT / "src/base/red.c",
             ROOT / "tools/common/tool_red.h"}

COMMENT_OR_STRING = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.DOTALL)
RED_USE = re.compile(r"\bRED\s*\(\s*([^)]*?)\s*\)")
NAME = re.compile(r'^"([a-z0-9]+(?:[-_][a-z0-9]+)+)"$')


class Tally:
    """Counts, and prints a line for each thing counted."""

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def good(self, text):
        self.passed += 1
        print(f"ok       {text}", flush=True)

    def bad(self, text, output=""):
        self.failed += 1
        print(f"FAILED   {text}", flush=True)
        for line in output.splitlines()[-20:]:
            print(f"         | {line}")

    def skip(self, text):
        self.skipped += 1
        print(f"skipped  {text}", flush=True)


# ---- What is listed, and what there is -----------------------------------------------------------


def read_lists(tally):
    cases = []
    for path in sorted((ROOT / "tests/red").glob("*.list")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            where = f"{path.relative_to(ROOT)}:{number}"
            if len(words) < 2 or not all("=" in word for word in words[2:]):
                tally.bad(f"{where}: want `breach test [NAME=value ...]`, have `{line.strip()}`")
                continue
            cases.append(Case(words[0], words[1], tuple(words[2:]), where))
    seen = {}
    for case in cases:
        key = case[:3]
        if key in seen:
            tally.bad(f"{case.where}: the same case as {seen[key]}")
        seen.setdefault(key, case.where)
    return cases


def without_comments(text):
    """The text without comments and character constants, whose quotes would mislead."""

    def keep_strings(match):
        return match.group(0) if match.group(0).startswith('"') else " "

    return COMMENT_OR_STRING.sub(keep_strings, text)


def breaches_in_sources(tally):
    """Where each breach is, as {name: "path"}."""
    found = {}
    for path in sorted([*(ROOT / "src").rglob("*.[ch]"), *(ROOT / "tools").rglob("*.[ch]")]):
        if path in ABOUT_RED:
            continue
        text = without_comments(path.read_text(encoding="utf-8"))
        for argument in RED_USE.findall(text):
            name = NAME.match(argument)
            shown = path.relative_to(ROOT)
            if name is None:
                tally.bad(f'{shown}: RED({argument}): want one string literal like "room-what"')
            else:
                found.setdefault(name.group(1), str(shown))
    return found


def tests_in_sources():
    """{test name: path}, named as CMakeLists.txt does."""
    tests = {}
    source = ROOT / "src"
    for pattern in ("*/*_test.c", "os/linux/*_test.c"):
        for path in sorted(source.glob(pattern)):
            name = str(path.relative_to(source).with_suffix("")).replace("/", "_")
            tests[name] = str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tools").glob("*/*_test.c")):
        name = str(path.relative_to(ROOT).with_suffix("")).replace("/", "_")
        tests[name] = str(path.relative_to(ROOT))
    for folder in ("integration", "sweep"):
        for path in sorted((ROOT / "tests" / folder).glob("*_test.c")):
            tests[f"{folder}_{path.stem}"] = str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests/fuzz").glob("fuzz_*.c")):
        tests[path.stem] = str(path.relative_to(ROOT))
    for name in ("spin", "scale", "attack"):
        tests[name] = f"tests/{name}/{name}_test.c"
    return tests


def check_lists(cases, tests, breaches, tally):
    listed_tests = {case.test for case in cases}
    listed_breaches = {case.breach for case in cases}
    for name, path in tests.items():
        if name not in listed_tests:
            tally.bad(f"{path}: no breach is listed for {name}")
    for name, path in breaches.items():
        if name not in listed_breaches:
            tally.bad(f'{path}: RED("{name}") is in no list')
    for case in cases:
        if case.breach not in breaches:
            tally.bad(f'{case.where}: there is no RED("{case.breach}") in src/ or tools/')
        if case.test not in tests and not case.test.startswith(KIT):
            tally.bad(f"{case.where}: there is no test {case.test}")


# ---- Running -------------------------------------------------------------------------------------


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def command(arguments, test):
    """The words that run a test."""
    if test.startswith(KIT):
        return [arguments.build / "bin/ndkconform", *test[len(KIT):].split(",")]
    if test.startswith("fuzz_"):
        return [arguments.build / "bin/fuzz" / test, ROOT / "tests/fuzz/corpus" / test[5:]]
    return [arguments.build / "bin/tests" / test]


def run(arguments, case, breach, limit=None):
    """Runs the test of a case. The status is None after the timeout."""
    environment = dict(os.environ)
    environment.pop("SOFTNDK_RED_BREACH", None)
    environment["SOFTNDK_SOURCE_DIR"] = str(ROOT)
    environment["SOFTNDK_BUILD_DIR"] = str(arguments.build)
    environment.update(word.split("=", 1) for word in case.environment)
    if breach:
        environment["SOFTNDK_RED_BREACH"] = breach
    begin = time.monotonic()
    # A group of its own, so that what the test started ends with it.
    with subprocess.Popen(
        command(arguments, case.test),
        cwd=arguments.build,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=no_core,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit or arguments.timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            status = None
    return Outcome(status, time.monotonic() - begin, output.decode(errors="replace"))


def run_breached(arguments, case, clean_seconds):
    """A breach of a race shows with a probability: it has TRIES runs to be noticed in."""
    limit = min(arguments.timeout, max(PATIENCE_MIN, PATIENCE * clean_seconds))
    for number in range(1, TRIES + 1):
        outcome = run(arguments, case, case.breach, limit)._replace(tries=number)
        if outcome.status not in (0, SKIPPED):
            break
    return outcome


def describe(outcome):
    if outcome.status is None:
        how = "no end"
    elif outcome.status < 0:
        how = signal.Signals(-outcome.status).name
    else:
        how = f"status {outcome.status}"
    tries = f", try {outcome.tries}" if outcome.tries > 1 else ""
    return f"{how}, {outcome.seconds:.1f} s{tries}"


def label(case, breach):
    return " ".join([case.test, breach or "(no breach)", *case.environment])


def run_all(arguments, work, clean_seconds=None):
    """Yields (case, outcome) in the order of the work, as the results come in."""
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [
            pool.submit(run, arguments, case, None) if clean_seconds is None
            else pool.submit(run_breached, arguments, case,
                             clean_seconds[case.test, case.environment])
            for case in work
        ]
        for case, future in zip(work, futures):
            yield case, future.result()


def run_cases(arguments, cases, tally):
    present = []
    for case in cases:
        if command(arguments, case.test)[0].is_file():
            present.append(case)
        else:
            tally.bad(f"{label(case, case.breach)}: the red build has no program {case.test}")

    # Without a breach: each test once an environment.
    clean = list({(case.test, case.environment): case for case in present}.values())
    unfit = {}
    seconds = {}
    for case, outcome in run_all(arguments, clean):
        seconds[case.test, case.environment] = outcome.seconds
        text = f"{label(case, None)}: {describe(outcome)}"
        if outcome.status == 0:
            tally.good(text)
        elif outcome.status == SKIPPED:
            reason = (outcome.output.strip().splitlines() or ["no reason given"])[-1]
            unfit[case.test, case.environment] = reason
            tally.skip(f"{text}: {reason}")
        else:
            unfit[case.test, case.environment] = "it fails without a breach"
            tally.bad(text, outcome.output)

    fit = []
    for case in present:
        reason = unfit.get((case.test, case.environment))
        if reason is None:
            fit.append(case)
        else:
            tally.skip(f"{label(case, case.breach)}: {reason}")
    for case, outcome in run_all(arguments, fit, seconds):
        text = f"{label(case, case.breach)}: {describe(outcome)}"
        if outcome.status in (0, SKIPPED):
            tally.bad(f"{text}: survived its breach ({case.where})", outcome.output)
        else:
            tally.good(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-red",
                        help="the build directory, made with -DSOFTNDK_RED=ON")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="tests at a time")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one run")
    parser.add_argument("--only", default="", help="only cases whose test or breach holds this")
    parser.add_argument("--lists-only", action="store_true", help="check the lists, run nothing")
    arguments = parser.parse_args()
    arguments.build = arguments.build.resolve()
    arguments.jobs = max(1, arguments.jobs)

    tally = Tally()
    cases = read_lists(tally)
    check_lists(cases, tests_in_sources(), breaches_in_sources(tally), tally)
    if not arguments.lists_only:
        chosen = [case for case in cases
                  if arguments.only in case.test or arguments.only in case.breach]
        if not chosen:
            tally.bad("there is no case to run")
        run_cases(arguments, chosen, tally)
    if tally.skipped:
        print(f"{tally.skipped} skipped")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
