#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The arithmetic of bench/run.py on rounds that are written here: which rounds count, ratios,
verdicts, the table; and that the rows are what run.py can run. Nothing is measured."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("SOFTNDK_SOURCE_DIR",
                                     pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "bench"))

import effects
import figures
import pairs
import rows
import run
from figures import Check, Ratio, Round, Summary


class Row:
    def __init__(self, *checks, less=False, peers=(), bounds=()):
        self.name, self.work, self.unit = "row", "some work", "M/s"
        self.less_is_better, self.once, self.often = less, False, 1
        self.peers = {name: None for name in peers}
        self.bounds = {name: None for name in bounds}
        self.checks, self.floor, self.softndk = checks, None, None


class Rounds(unittest.TestCase):
    def test_kept_when_floors_agree(self):
        self.assertTrue(Round([4.0, 5.0], 1).kept) # a quarter exactly
        self.assertFalse(Round([4.0, 5.01], 1).kept)
        self.assertFalse(Round([5.01, 4.0], 1).kept)

    def test_what_failed_is_not_kept(self):
        self.assertFalse(Round([4.0, None], 1).kept)
        self.assertFalse(Round([4.0, 4.0], None).kept)

    def test_without_floor(self):
        self.assertTrue(Round([], 12.5).kept)
        self.assertEqual(Round([], 12.5).of_floor, [])

    def test_floor_is_of_both(self):
        self.assertEqual(Round([4.0, 5.0], 1).of_floor, [4.0, 5.0])
        one = Summary(Row(), [Round([[4.0, 9.0, 4.4], [5.0, 5.2, 1.0]], 1)])
        self.assertEqual(one.floor, 4.7)

    def test_figures_are_medians_of_the_passes(self):
        one = Round([[1, 9, 2], [2, 2]], [7, 5, 99], {"p": [3, 1, 1]}, {"b": [4, 4, 8]})
        self.assertEqual((one.floors, one.softndk, one.peers, one.bounds),
                         ([2, 2], 7, {"p": 1}, {"b": 4}))
        self.assertTrue(one.kept) # by the medians, not by the passes

    def test_without_a_pass_there_is_no_figure(self):
        one = Round([[1, 1], [1]], [], {"p": []}, {"b": []})
        self.assertEqual((one.softndk, one.peers, one.bounds), (None, {"p": None}, {"b": None}))
        self.assertFalse(one.kept)


class Ratios(unittest.TestCase):
    def test_of_medians_with_least_and_most(self):
        ratio = Ratio([(8, 10), (9, 10), (30, 20)])
        self.assertEqual(ratio.value, 9 / 10)
        self.assertEqual((ratio.least, ratio.most), (0.8, 1.5))
        self.assertEqual(ratio.text(), "0.90 [0.80..1.50]")

    def test_even_number(self):
        self.assertEqual(Ratio([(1, 10), (3, 10)]).value, 0.2)

    def test_of_all_passes(self):
        ratio = Ratio([([1, 2, 3], [10, 10, 10]), ([4, 8, 12], [20, 20, 40])])
        self.assertEqual(ratio.value, 3.5 / 15)
        self.assertEqual((ratio.least, ratio.most), (0.2, 0.4))

    def test_of_each_round(self):
        ratio = Ratio([(8, 10), (30, 20), (18, 30)])
        self.assertEqual((ratio.value, ratio.of_rounds), (18 / 20, 0.8))
        self.assertEqual(ratio.data(), {"value": 0.9, "least": 0.6, "most": 1.5,
                                        "median_of_ratios": 0.8})


class Summaries(unittest.TestCase):
    def test_dropped_rounds_do_not_count(self):
        one = Summary(Row(Check("floor", ">=", 0.9)),
                      [Round([10, 10], 9.5), Round([10, 20], 1), Round([10, None], 1)])
        self.assertEqual((len(one.kept), one.dropped), (1, 1))
        self.assertEqual(one.of_floor.value, 0.95)
        self.assertEqual(one.verdict(), "at target")

    def test_below(self):
        one = Summary(Row(Check("floor", ">=", 0.9)), [Round([10, 10], 8)] * 5)
        self.assertEqual(one.verdict(), "below: 0.80, need >= 0.9 x floor")

    def test_at_the_bound(self):
        row = Row(Check("floor", "<=", 1.25), less=True)
        self.assertEqual(Summary(row, [Round([4, 4], 5)]).verdict(), "at target")

    def test_nothing_kept(self):
        row = Row(Check("floor", ">=", 0.9))
        self.assertEqual(Summary(row, [Round([1, 2], 1)]).verdict(), "no round kept")
        self.assertEqual(Summary(row, [Round([1, None], 1)]).verdict(), "not measured")
        self.assertEqual(Summary(row, []).verdict(), "not measured")

    def test_best_peer(self):
        peers = {"slow": 2.0, "fast": 3.0}
        faster = Summary(Row(Check("peer", ">=", 5), peers=peers), [Round([1, 1], 15, peers)])
        self.assertEqual((faster.best, faster.of_peer.value), ("fast", 5.0))
        self.assertEqual(faster.verdict(), "at target")
        shorter = Summary(Row(Check("peer", "<", 1), less=True, peers=peers),
                          [Round([1, 1], 2.0, peers)])
        self.assertEqual((shorter.best, shorter.of_peer.value), ("slow", 1.0))
        self.assertEqual(shorter.verdict(), "below: 1.00, need < 1 x best peer")

    def test_peer_that_failed_once_is_no_peer(self):
        row = Row(Check("floor", ">=", 1), Check("peer", ">=", 5), peers=("a",))
        one = Summary(row, [Round([1, 1], 9, {"a": 1}), Round([1, 1], 9, {"a": None})])
        self.assertIsNone(one.best)
        self.assertEqual(one.verdict(), "at target (no peer)")

    def test_bounds(self):
        row = Row(Check("floor", "<=", 1.05), less=True, bounds=("asleep", "odd"))
        one = Summary(row, [Round([10, 10], 15, bounds={"asleep": 12, "odd": 1}),
                            Round([10, 30], 99, bounds={"asleep": 99, "odd": 1}),
                            Round([20, 20], 36, bounds={"asleep": [24], "odd": []})])
        self.assertEqual(list(one.bounds), ["asleep"])
        bound = one.bounds["asleep"]
        self.assertEqual((bound.figure, bound.of_floor.value, bound.softndk_to_it.value),
                         (18, 18 / 15, 25.5 / 18))
        self.assertEqual((bound.softndk_to_it.least, bound.softndk_to_it.most), (1.25, 1.5))
        data = one.data()
        self.assertEqual(data["bounds"]["asleep"]["figure"], 18)
        self.assertEqual(data["bounds"]["asleep"]["of_floor"]["value"], 1.2)
        self.assertEqual(data["bounds"]["asleep"]["softndk_to_it"]["most"], 1.5)
        self.assertEqual(data["rounds"][2]["bounds"], {"asleep": [24], "odd": []})

    def test_a_bound_drops_no_round(self):
        self.assertTrue(Round([1, 1], 1, bounds={"b": None}).kept)

    def test_value(self):
        row = Row(Check("value", ">=", 1.0))
        self.assertEqual(Summary(row, [Round([], 0.9)]).verdict(), "below: 0.90, need >= 1 M/s")

    def test_table(self):
        row = Row(Check("floor", ">=", 0.9), Check("peer", ">=", 5), peers=("a",))
        one = Summary(row, [Round([10, 10], 9.5, {"a": 0.5}), Round([10, 13], 9, {"a": 0.5})])
        self.assertEqual(
            figures.table([one]).splitlines()[2],
            "| some work | M/s | 10.00 | 9.500 | 0.95 [0.95..0.95] | 0.500 (a) | "
            "19.00 [19.00..19.00] | >= 0.9 x floor, >= 5 x best peer | 1 of 2 | at target |")
        self.assertEqual(one.data()["of_peer"]["value"], 19.0)

    def test_table_of_bounds(self):
        row = Row(Check("floor", ">=", 0.9), bounds=("the messages",))
        one = Summary(row, [Round([10, 10], 6, bounds={"the messages": 8})])
        self.assertEqual(figures.bounds_table([Summary(Row(), [Round([1, 1], 1)]), one]),
                         "Between the floor and softndk:\n\n"
                         "| work | unit | floor | bound | its figure | to the floor | "
                         "softndk to it |\n|---|---|---|---|---|---|---|\n"
                         "| some work | M/s | 10.00 | the messages | 8.000 | 0.80 [0.80..0.80] | "
                         "0.75 [0.75..0.75] |\n")

    def test_no_table_without_bounds(self):
        self.assertEqual(figures.bounds_table([Summary(Row(), [Round([1, 1], 1)])]), "")
        self.assertEqual(figures.bounds_table([Summary(Row(bounds=("b",)), [])]), "")

    def test_numbers(self):
        self.assertEqual([figures.number(value) for value in (None, 0.5, 12.345, 123.45, 9831.4)],
                         ["-", "0.500", "12.35", "123.5", "9831"])


def told(name, value=None, of_rounds=None):
    """A row as --json has it."""
    ratio = None if value is None else {"value": value, "least": 0, "most": 9}
    if of_rounds is not None:
        ratio["median_of_ratios"] = of_rounds
    return {"row": name, "of_floor": ratio}


class Comparisons(unittest.TestCase):
    def test_percent(self):
        self.assertAlmostEqual(figures.apart(1.0, 1.25), 25)
        self.assertAlmostEqual(figures.apart(1.25, 1.0), 25)
        self.assertEqual(figures.apart(0.5, 0.5), 0)
        self.assertIsNone(figures.apart(None, 0.5))
        self.assertIsNone(figures.apart(0.5, None))

    def test_two_runs(self):
        lines = figures.compare([told("near", 1.0, 1.0), told("far", 0.5, 0.5), told("memory")],
                                [told("far", 0.6, 0.5), told("near", 1.1, 1.2), told("memory")])
        self.assertEqual([line.split() for line in lines.splitlines()], [
            "ratio first second differ by of rounds: first second differ by".split(),
            "near 1.000 1.100 10.0 % 1.000 1.200 20.0 %".split(),
            "far 0.500 0.600 20.0 % 0.500 0.500 0.0 %".split(),
            "memory - - - - - -".split(),
            "1 of 2 ratios agree within 10 %; by the medians of the rounds' ratios 1 of 2".split()])

    def test_ratios_to_peers_too(self):
        row = Row(Check("floor", ">=", 0.9), peers=("a",))
        rows_of = [[Summary(row, [Round([10, 10], 9, {"a": peer})]).data()] for peer in (3, 2)]
        lines = figures.compare(*rows_of)
        self.assertRegex(lines, "\nrow +0.900 +0.900 +0.0 %")
        self.assertRegex(lines, "\nrow, to a +3.000 +4.500 +50.0 %")
        self.assertIn("\n1 of 2 ratios agree", lines)
        rows_of[1][0]["best_peer"] = "b" # the table's ratio is to the best one, whichever it is
        self.assertRegex(figures.compare(*rows_of), "\nrow, to a and b +3.000 +4.500 +50.0 %")
        del rows_of[0][0]["of_peer"] # only the second run had peers
        lines = figures.compare(*rows_of)
        self.assertRegex(lines, "\nrow, to b +- +4.500 +- ")
        self.assertIn("\n1 of 1 ratios agree", lines)

    def test_a_row_that_one_run_lacks(self):
        lines = figures.compare([told("a", 1.0), told("b", 1.0)], [told("b", 1.0), told("c", 1.0)])
        self.assertEqual([line.split()[0:3] for line in lines.splitlines()[1:4]],
                         [["a", "1.000", "-"], ["b", "1.000", "1.000"], ["c", "-", "1.000"]])
        self.assertRegex(lines, "\n1 of 1 ratios agree .* 0 of 0\n")

    def test_what_a_session_writes_can_be_compared(self):
        row = Row(Check("floor", ">=", 0.9))
        rows_of = [[Summary(row, [Round([10, 10], value)]).data()] for value in (9, 6)]
        self.assertRegex(figures.compare(*rows_of), r"row +0\.900 +0\.600 +50\.0 %")
        self.assertIn("\n0 of 1 ratios agree", figures.compare(*rows_of))


class Documents(unittest.TestCase):
    def test_between_the_marks(self):
        document = f"before\n{figures.BEGIN}\nold\n{figures.END}\nafter\n"
        once = figures.place(document, "new\n")
        self.assertEqual(once, f"before\n{figures.BEGIN}\n\nnew\n\n{figures.END}\nafter\n")
        self.assertEqual(figures.place(once, "new\n"), once)

    def test_without_marks(self):
        self.assertEqual(figures.place("old\n", "new\n"), "new\n")

    def test_our_document_has_them(self):
        text = (SOURCE / "docs/performance.md").read_text(encoding="utf-8")
        self.assertEqual((text.count(figures.BEGIN), text.count(figures.END)), (1, 1))


class Fake(pairs.Programs):
    """Notes the command lines and answers with figures."""

    def __init__(self):
        super().__init__(pathlib.Path("/nowhere"))
        self.lines, self.seconds_of = [], {}

    def answer(self, name, *arguments):
        self.lines.append([name, *map(str, arguments)])
        return {key: 2.0 for key in ("t_avg_us", "rate_Mps", "MBps", "bw_avg_MBps", "conns_per_s",
                                     "KiB")} | {"iters": 100000}

    def own(self, name, arguments, seconds=None):
        self.seconds_of[arguments[-1]] = seconds
        return self.answer(name, *arguments)

    def ndkperf(self, *arguments):
        return self.answer("ndkperf", *arguments)

    def fi_pingpong(self, size, count):
        return self.answer("fi_pingpong", size, count)

    def ucx(self, test, size, count):
        return self.answer("ucx", test, size, count)

    def scale_test(self, links):
        return self.answer("scale", links)


class Sessions(unittest.TestCase):
    def session(self, **more):
        names = {"rounds": 5, "minutes": 1, "quick": False, "no_peers": False, "chosen": [], **more}
        return run.Session(Fake(), type("Arguments", (), names))

    def one_pass(self, **more):
        session = self.session(**more)
        session.programs.passes = 1
        return session

    def test_every_row_can_be_run(self):
        self.assertEqual(len({row.name for row in rows.ROWS}), len(rows.ROWS))
        for row in rows.ROWS:
            session = self.session(chosen=[row])
            session.programs.why_not = lambda name: None
            one = session.round(row)
            self.assertTrue(one.kept, row.name)
            self.assertEqual(set(one.peers), set(row.peers), row.name)
            self.assertEqual(set(one.bounds), set(row.bounds), row.name)
            self.assertTrue(row.checks, row.name)

    def test_both_sides_have_the_same_crc_and_size(self):
        for row in rows.ROWS:
            session = self.session(chosen=[row])
            session.round(row)
            said = {}
            for line in session.programs.lines:
                for option, key in (("--crc", "crc"), ("--size", "size"), ("-S", "size")):
                    if option in line and line[0] in ("bench/floor", "ndkperf"):
                        said.setdefault(key, set()).add(line[line.index(option) + 1])
            for key, values in said.items():
                self.assertEqual(len(values), 1, f"{row.name}: {key} {values}")

    def test_growth_is_of_one_pass(self):
        times = {"1": iter((2.0, 1.0)), "10": iter((3.0, 9.0))}

        class Timed(Fake):
            def ndkperf(self, *arguments):
                words = list(map(str, arguments))
                return {"t_avg_us": next(times[words[words.index("-q") + 1]]), "iters": 100000}
        programs = Timed()
        growth = next(row for row in rows.ROWS if row.name == "qps-10").softndk
        self.assertEqual([growth(programs), growth(programs)], [1.5, 9.0])

    def test_all_passes_count(self):
        row = Row(Check("floor", ">=", 0.9))
        values = iter((7.0, 1.0, 3.0))
        row.floor, row.softndk = (lambda _: 1), (lambda _: next(values))
        session = self.session(chosen=[row])
        session.programs.passes = 3
        one = session.round(row)
        self.assertEqual((one.of_softndk, one.softndk), ([7.0, 1.0, 3.0], 3.0))
        data = Summary(row, session.rounds[row]).data()
        self.assertEqual(data["rounds"][0]["floors"], [[1, 1, 1], [1, 1, 1]])
        self.assertEqual(data["rounds"][0]["softndk"], [7.0, 1.0, 3.0])

    def test_a_pass_that_fails_changes_nothing(self):
        row = Row(Check("floor", ">=", 0.9))
        turn = iter(range(1000))

        def sometimes(_):
            if next(turn) == 1:
                raise pairs.Failed("once")
            return 7.0
        row.floor, row.softndk = (lambda _: 1), sometimes
        session = self.session(chosen=[row])
        session.programs.passes = 2
        self.assertEqual(session.round(row).softndk, 7.0)
        self.assertEqual(session.failures, {"row, softndk: once": 1})

    def test_later_runs_take_as_long_as_is_wanted(self):
        programs = Fake()
        for _ in range(2):
            programs.timed("--op", "send")
        programs.timed("--op", "read")
        for _ in range(2):
            programs.timed("--op", "write", times=3)
        self.assertEqual([line[3:] for line in programs.lines],
                         [["-D", "1"], ["-n", str(int(100000 * programs.seconds))], ["-D", "1"],
                          ["-D", "1"], ["-n", str(int(300000 * programs.seconds))]])
        programs.floor("send")
        programs.floor("robin", times=3)
        self.assertEqual(programs.seconds_of,
                         {"send": programs.seconds, "robin": 3 * programs.seconds})

    def test_order_of_a_round(self):
        row = Row(peers=("p",), bounds=("b",))
        row.often = 3
        order = []

        def note(what):
            return lambda _: order.append(what) or 1.0
        row.floor, row.softndk = note("floor"), note("softndk")
        row.bounds, row.peers = {"b": note("bound")}, {"p": note("peer")}
        session = self.session(chosen=[row])
        session.programs.why_not = lambda name: None
        self.assertEqual(session.round(row).bounds, {"b": 1.0})
        self.assertEqual(order, ["floor", "softndk", "bound", "peer", "floor"] *
                         (3 * session.programs.passes))

    def test_rows_whose_bounds_are_measured(self):
        words = {}
        for row in rows.ROWS:
            for bound in row.bounds.values():
                programs = Fake()
                bound(programs)
                words[row.name] = " ".join(programs.lines[0])
        self.assertEqual(words, {
            "lat-spin": "bench/floor --wait spin --size 64 event",
            "lat-event": "bench/floor --wait block --size 64 event",
            "lat-adaptive": "bench/floor --wait spin --size 64 event",
            "connect": "bench/floor --sockets 1 mpa",
            "connect-64": "bench/floor --sockets 64 mpa"})

    def test_peers_that_are_missing_are_skipped_with_a_reason(self):
        row = rows.ROWS[0]
        session = self.session(chosen=[row])
        session.programs.why_not = lambda name: f"{name} is not here"
        self.assertEqual(session.round(row).peers, {})
        self.assertIn("ucx_perftest is not here", session.skipped.values())

    def test_dropped_rounds_are_made_up_for(self):
        row = Row(Check("floor", ">=", 0.9))
        floors = iter([1, 2, 1, 1, 1, 2, 1, 1] + [1, 1] * 20)
        row.floor, row.softndk = (lambda _: next(floors)), (lambda _: 1)
        session = self.one_pass(chosen=[row], rounds=3)
        session.run()
        self.assertEqual([one.kept for one in session.rounds[row]],
                         [False, True, False, True, True])

    def test_but_not_for_ever(self):
        row = Row(Check("floor", ">=", 0.9))
        turn = iter(range(1000))
        row.floor, row.softndk = (lambda _: 1 + next(turn) % 2), (lambda _: 1)
        session = self.one_pass(chosen=[row], rounds=3)
        session.run()
        self.assertEqual(len(session.rounds[row]), 6)

    def test_failures_are_told(self):
        def fails(_):
            raise pairs.Failed("no such thing")
        row = Row(Check("floor", ">=", 0.9))
        row.floor, row.softndk = (lambda _: 1), fails
        session = self.one_pass(chosen=[row], rounds=2)
        session.run()
        self.assertEqual(session.failures, {"row, softndk: no such thing": 4})


class Effects(unittest.TestCase):
    def test_every_effect_can_be_measured(self):
        for effect in effects.EFFECTS:
            programs = Fake()
            self.assertEqual(effects.measure(programs, effect), (2.0, 2.0))
            default, changed = programs.lines[:2]
            self.assertEqual(len(programs.lines), 2 * effects.PASSES)
            self.assertNotEqual(default, changed, effect.option)
            self.assertEqual(default[:3], changed[:3], effect.option) # the same work

    def test_a_line(self):
        line = effects.line(effects.EFFECTS[0], [(2.0, 3.0), (4.0, 4.0), (1.0, 2.0)])
        self.assertEqual(line, "| `crc=0` | 1 MiB writes | MB/s | 2.000 | 3.000 | "
                               "1.50 [1.00..2.00] |")

    def test_our_document_has_the_marks(self):
        text = (SOURCE / "docs/tuning.md").read_text(encoding="utf-8")
        self.assertEqual((text.count(figures.BEGIN), text.count(figures.END)), (1, 1))


class Commands(unittest.TestCase):
    def test_compare(self):
        with tempfile.TemporaryDirectory() as directory:
            names = [str(pathlib.Path(directory) / name) for name in ("a.json", "b.json")]
            for name, value in zip(names, (0.5, 0.8)):
                pathlib.Path(name).write_text(json.dumps({"rows": [told("far", value, value)]}))
            command = [sys.executable, str(SOURCE / "bench/run.py"), "--compare"]
            done = subprocess.run([*command, *names], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("0 of 1 ratios agree within 10 %", done.stdout)
            for text in ("[1]", '{"rows": 3}', '{"rows": [{"name": "x"}]}',
                         '{"rows": {"lat-spin": {}}}', '{"rows": [{"row": "x", "of_floor": 3}]}'):
                pathlib.Path(names[1]).write_text(text)
                done = subprocess.run([*command, *names], capture_output=True, text=True,
                                      check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("b.json: not what --json writes", done.stderr)

    def test_what_cannot_be_is_known_before_anything_is_measured(self):
        for words, sentence in ((["--rounds", "0"], "--rounds 0: at least 1 is needed"),
                                (["--json", __file__ + "/x"], "/x: cannot be written"),
                                (["--markdown", "/"], "/: cannot be written")):
            done = subprocess.run([sys.executable, str(SOURCE / "bench/run.py"), *words],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(sentence, done.stderr)


class Pairs(unittest.TestCase):
    def test_server_and_client(self):
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory) / "server"
            program.write_text("#!/bin/sh\necho listening on 127.0.0.1:77\n")
            program.chmod(0o755)
            self.assertEqual(pairs.run([program], lambda port: ["echo", port]).strip(), "77")
            with self.assertRaisesRegex(pairs.Failed, "false: exit status 1"):
                pairs.run([program], lambda port: ["false"])
            program.write_text("#!/bin/sh\necho cannot\nexit 1\n")
            with self.assertRaisesRegex(pairs.Failed, "server: does not listen: cannot"):
                pairs.run([program], lambda port: ["true"])


if __name__ == "__main__":
    sys.stderr = open(os.devnull, "w", encoding="utf-8") # what run.py tells meanwhile
    unittest.main(testRunner=unittest.TextTestRunner(stream=sys.stdout))
