# SPDX-License-Identifier: MIT
"""The arithmetic of `make bench`: which rounds count, ratios, verdicts, the tables, how far apart
two runs are.

A round of a row is floor, softndk, bounds, peers, floor. Its two floors tell whether the machine
was the same throughout; a round whose floors differ by more than a quarter is dropped. Nothing here
measures."""

import statistics

DRIFT = 1.25 # most that the two floors of a round may differ, as a factor
AGREE = 10   # percent that two runs may be apart


def median(values):
    values = list(values)
    return statistics.median(values) if values else None


def passes(values):
    """What the passes of a round gave; one figure, or None, is that of a single pass."""
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]


def together(lists):
    return [value for values in lists for value in values]


class Round:
    """What the passes of one round of one row gave. Its figures are the medians; None: not
    measured, or failed."""

    def __init__(self, floors, softndk, peers=None, bounds=None):
        self.of_floors = [passes(values) for values in floors]
        self.of_softndk = passes(softndk)
        self.of_peers = {name: passes(values) for name, values in (peers or {}).items()}
        self.of_bounds = {name: passes(values) for name, values in (bounds or {}).items()}
        self.floors = [median(values) for values in self.of_floors]
        self.softndk = median(self.of_softndk)
        self.peers = {name: median(values) for name, values in self.of_peers.items()}
        self.bounds = {name: median(values) for name, values in self.of_bounds.items()}

    @property
    def of_floor(self):
        return together(self.of_floors)

    @property
    def kept(self):
        if self.softndk is None or None in self.floors:
            return False
        return not self.floors or max(self.floors) <= DRIFT * min(self.floors)


class Ratio:
    """One thing to another over the rounds, each a pair of what the passes gave: of the medians of
    all passes, and the least and most of one round.

    `of_rounds` is the median of the ratios of the rounds: what changes from round to round alike
    for both does not show in it."""

    def __init__(self, pairs):
        pairs = [(passes(mine), passes(other)) for mine, other in pairs]
        each = [median(mine) / median(other) for mine, other in pairs]
        self.least, self.most = min(each), max(each)
        self.of_rounds = median(each)
        self.value = median(together(mine for mine, _ in pairs)) / \
            median(together(other for _, other in pairs))

    def text(self):
        return f"{self.value:.2f} [{self.least:.2f}..{self.most:.2f}]"

    def data(self):
        return {"value": self.value, "least": self.least, "most": self.most,
                "median_of_ratios": self.of_rounds}


class Bound:
    """What a bound came to over the rounds, between the floor and softndk."""

    def __init__(self, name, rounds):
        self.figure = median(together(one.of_bounds[name] for one in rounds))
        self.of_floor = Ratio([(one.of_bounds[name], one.of_floor) for one in rounds])
        self.softndk_to_it = Ratio([(one.of_softndk, one.of_bounds[name]) for one in rounds])

    def data(self):
        return {"figure": self.figure, "of_floor": self.of_floor.data(),
                "softndk_to_it": self.softndk_to_it.data()}


class Check:
    """One line that a row has to reach. `of`: "floor", "peer" (the best one), or "value"."""

    def __init__(self, of, relation, bound):
        assert of in ("floor", "peer", "value") and relation in ("<=", ">=", "<", ">")
        self.of, self.relation, self.bound = of, relation, bound

    def holds(self, have):
        return {"<=": have <= self.bound, ">=": have >= self.bound, "<": have < self.bound,
                ">": have > self.bound}[self.relation]

    def text(self, unit=""):
        name = {"floor": "floor", "peer": "best peer"}.get(self.of)
        return f"{self.relation} {self.bound:g} x {name}" if name else \
            f"{self.relation} {self.bound:g} {unit}"


class Summary:
    """What all rounds of a row come to."""

    def __init__(self, row, rounds):
        self.row, self.rounds = row, rounds
        self.kept = [one for one in rounds if one.kept]
        self.dropped = sum(1 for one in rounds if not one.kept and one.softndk is not None and
                           None not in one.floors)
        self.softndk = median(together(one.of_softndk for one in self.kept))
        self.floor = median(together(one.of_floor for one in self.kept))
        self.of_floor = self.ratio((one.of_softndk, one.of_floor) for one in self.kept
                                   if one.floors)
        self.peers = {name: median(together(one.of_peers[name] for one in self.kept))
                      for name in row.peers
                      if self.always(one.peers.get(name) for one in self.kept)}
        self.bounds = {name: Bound(name, self.kept) for name in row.bounds
                       if self.always(one.bounds.get(name) for one in self.kept)}
        self.best = self.best_peer()
        self.of_peer = self.ratio((one.of_softndk, one.of_peers[self.best]) for one in self.kept) \
            if self.best else None

    @staticmethod
    def always(values):
        """Whether there is a figure of each round that counts."""
        values = list(values)
        return bool(values) and None not in values

    @staticmethod
    def ratio(pairs):
        pairs = list(pairs)
        return Ratio(pairs) if pairs else None

    def best_peer(self):
        pick = min if self.row.less_is_better else max
        return pick(self.peers, key=self.peers.get) if self.peers else None

    def have(self, check):
        if check.of == "value":
            return self.softndk
        ratio = self.of_floor if check.of == "floor" else self.of_peer
        return ratio.value if ratio else None

    def verdict(self):
        """"at target", "below: ..." or why there is none."""
        if not self.kept:
            return "no round kept" if self.dropped else "not measured"
        missed, open_ = [], []
        for check in self.row.checks:
            have = self.have(check)
            if have is None:
                open_.append(f"no {check.of}")
            elif not check.holds(have):
                missed.append(f"{have:.2f}, need {check.text(self.row.unit)}")
        if missed:
            return "below: " + "; ".join(missed)
        return "at target" + (f" ({', '.join(open_)})" if open_ else "")

    def data(self):
        def ratio(one):
            return one and one.data()
        return {"row": self.row.name, "work": self.row.work, "unit": self.row.unit,
                "softndk": self.softndk, "floor": self.floor, "of_floor": ratio(self.of_floor),
                "bounds": {name: bound.data() for name, bound in self.bounds.items()},
                "peers": self.peers, "best_peer": self.best, "of_peer": ratio(self.of_peer),
                "kept": len(self.kept), "dropped": self.dropped, "verdict": self.verdict(),
                "targets": [check.text(self.row.unit) for check in self.row.checks],
                "rounds": [{"floors": one.of_floors, "softndk": one.of_softndk,
                            "bounds": one.of_bounds, "peers": one.of_peers, "kept": one.kept}
                           for one in self.rounds]}


def number(value):
    """Three or four digits that matter."""
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def table(summaries):
    """The rows as Markdown."""
    lines = ["| work | unit | floor | softndk | to the floor | best peer | to it | target | kept | "
             "|", "|---|---|---|---|---|---|---|---|---|---|"]
    for one in summaries:
        row = one.row
        peer = f"{number(one.peers[one.best])} ({one.best})" if one.best else "-"
        lines.append("| " + " | ".join([
            row.work, row.unit, number(one.floor), number(one.softndk),
            one.of_floor.text() if one.of_floor else "-", peer,
            one.of_peer.text() if one.of_peer else "-",
            ", ".join(check.text(row.unit) for check in row.checks) or "-",
            f"{len(one.kept)} of {len(one.rounds)}", one.verdict()]) + " |")
    return "\n".join(lines) + "\n"


def bounds_table(summaries):
    """The bounds as Markdown; nothing if none was measured."""
    lines = ["Between the floor and softndk:", "",
             "| work | unit | floor | bound | its figure | to the floor | softndk to it |",
             "|---|---|---|---|---|---|---|"]
    head = len(lines)
    for one in summaries:
        for name, bound in one.bounds.items():
            lines.append("| " + " | ".join([
                one.row.work, one.row.unit, number(one.floor), name, number(bound.figure),
                bound.of_floor.text(), bound.softndk_to_it.text()]) + " |")
    return "\n".join(lines) + "\n" if len(lines) > head else ""


# ---- two runs ------------------------------------------------------------------------------------

def apart(one, other):
    """By how many percent the larger is more than the smaller; None if there are not two."""
    if one is None or other is None:
        return None
    return 100 * (max(one, other) / min(one, other) - 1)


def ratios_of(rows):
    """By row and whether it is to the best peer instead of the floor: the ratio and that peer."""
    named = {}
    for row in rows:
        named[row["row"], False] = row["of_floor"] or {}, None
        if row.get("of_peer"):
            named[row["row"], True] = row["of_peer"], row["best_peer"]
    return named


def label(key, runs):
    """Of a ratio. Two peers about as good may take turns at being the best one: both are named."""
    row, to_peer = key
    peers = [run[key][1] for run in runs if key in run]
    return f"{row}, to {' and '.join(dict.fromkeys(peers))}" if to_peer else row


def compare(first, second):
    """The ratios of two runs side by side; both are the rows of what --json writes."""
    runs = [ratios_of(rows) for rows in (first, second)]
    names = {key: label(key, runs) for key in [*runs[0], *runs[1]]}
    width = max(map(len, ["ratio", *names.values()]))
    ends = f"{'first':>8}{'second':>8}{'differ by':>11}"
    lines = [f"{'ratio':<{width}}{ends}   of rounds:{ends}"]
    counts = {"value": [], "median_of_ratios": []} # which agree, of those that both have
    for name, text in names.items():
        columns = []
        for key, agree in counts.items():
            ratios = [run.get(name, ({}, None))[0].get(key) for run in runs]
            percent = apart(*ratios)
            if percent is not None:
                agree.append(round(percent, 1) <= AGREE)
            columns.append("".join(f"{number(ratio):>8}" for ratio in ratios) +
                           (f"{'-':>11}" if percent is None else f"{percent:9.1f} %"))
        lines.append(f"{text:<{width}}{columns[0]}{'':13}{columns[1]}")
    by_medians, by_rounds = (f"{sum(agree)} of {len(agree)}" for agree in counts.values())
    lines.append(f"{by_medians} ratios agree within {AGREE} %; by the medians of the rounds' ratios "
                 f"{by_rounds}")
    return "\n".join(lines) + "\n"


# ---- documents -----------------------------------------------------------------------------------

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def place(document, text):
    """The document with the text between its marks, or the text alone if there are none."""
    if BEGIN not in document or END not in document:
        return text
    head, rest = document.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{text.strip()}\n\n{END}{rest.split(END, 1)[1]}"
