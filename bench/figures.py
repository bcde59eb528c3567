# SPDX-License-Identifier: MIT
"""The arithmetic of `make bench`: which rounds count, ratios, verdicts, the table.

A round of a row is floor, softndk, peers, floor. Its two floors tell whether the machine was the
same throughout; a round whose floors differ by more than a quarter is dropped. Nothing here
measures."""

import statistics

DRIFT = 1.25 # most that the two floors of a round may differ, as a factor


class Round:
    """What one round of one row gave. None: not measured, or failed."""

    def __init__(self, floors, softndk, peers=None):
        self.floors, self.softndk, self.peers = list(floors), softndk, dict(peers or {})

    @property
    def floor(self):
        return statistics.fmean(self.floors) if self.floors else None

    @property
    def kept(self):
        if self.softndk is None or None in self.floors:
            return False
        return not self.floors or max(self.floors) <= DRIFT * min(self.floors)


class Ratio:
    """softndk to something else over the rounds: of the medians, and the least and most of one
    round."""

    def __init__(self, pairs):
        each = [mine / other for mine, other in pairs]
        self.least, self.most = min(each), max(each)
        self.value = statistics.median(mine for mine, _ in pairs) / \
            statistics.median(other for _, other in pairs)

    def text(self):
        return f"{self.value:.2f} [{self.least:.2f}..{self.most:.2f}]"


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
        self.softndk = self.median(one.softndk for one in self.kept)
        self.floor = self.median(one.floor for one in self.kept if one.floors)
        self.of_floor = self.ratio((one.softndk, one.floor) for one in self.kept if one.floors)
        self.peers = {}
        for name in row.peers:
            values = [one.peers.get(name) for one in self.kept]
            if values and None not in values:
                self.peers[name] = self.median(values)
        self.best = self.best_peer()
        self.of_peer = self.ratio((one.softndk, one.peers[self.best]) for one in self.kept) \
            if self.best else None

    @staticmethod
    def median(values):
        values = list(values)
        return statistics.median(values) if values else None

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
            return one and {"value": one.value, "least": one.least, "most": one.most}
        return {"row": self.row.name, "work": self.row.work, "unit": self.row.unit,
                "softndk": self.softndk, "floor": self.floor, "of_floor": ratio(self.of_floor),
                "peers": self.peers, "best_peer": self.best, "of_peer": ratio(self.of_peer),
                "kept": len(self.kept), "dropped": self.dropped, "verdict": self.verdict(),
                "targets": [check.text(self.row.unit) for check in self.row.checks],
                "rounds": [{"floors": one.floors, "softndk": one.softndk, "peers": one.peers,
                            "kept": one.kept} for one in self.rounds]}


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


BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def place(document, text):
    """The document with the text between its marks, or the text alone if there are none."""
    if BEGIN not in document or END not in document:
        return text
    head, rest = document.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{text.strip()}\n\n{END}{rest.split(END, 1)[1]}"
