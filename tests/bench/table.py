# SPDX-License-Identifier: LicenseRef-Undeclared
"""The table of tests/bench/run: one row for each thing measured, its peer, and the goal."""
import json
import statistics


class Goal:
    def __init__(self, text, holds):
        self.text, self.holds = text, holds


def at_most(limit, text=None):
    return Goal(text or f"≤ {limit:g}×", lambda ratio: ratio <= limit)


def at_least(limit):
    return Goal(f"≥ {limit:g}×", lambda ratio: ratio >= limit)


NO_GOAL = Goal("", None)


def ratio_text(ratio):
    return f"{ratio:.3f}" if ratio >= 0.1 else f"1/{1 / ratio:,.0f}"


def spread(values, show, unit):
    """The median of the rounds and, where there are several, their range."""
    text = show(statistics.median(values))
    if len(values) > 1:
        text += f" ({show(min(values))} to {show(max(values))})"
    return f"{text} {unit}"


class Report:
    """Prints each row as it comes; keeps all for the JSON."""

    COLUMNS = ("what; beside what", "ours: median (range)", "theirs: median (range)", "ratio", "its range",
               "goal", "met")

    def __init__(self):
        self.rows = []
        print("| " + " | ".join(self.COLUMNS) + " |")
        print("| --- | ---: | ---: | ---: | --- | --- | --- |", flush=True)

    def rounds(self, key, what, ours, theirs, goal, show="{:,.2f}", unit="", of=lambda ours, theirs: ours / theirs,
               notes=("", ""), raw=None):
        """A row of rounds, one number each: a round of ours is compared with theirs of the same
        round, and the median of the ratios counts, so that what slows both weighs little."""
        ratios = [of(*both) for both in zip(ours, theirs, strict=True)]
        self.row(key, what, *(spread(values, show.format, unit) + note
                              for values, note in zip((ours, theirs), notes)),
                 statistics.median(ratios), goal, {"ours": ours, "theirs": theirs, **(raw or {})}, ratios)

    def row(self, key, what, ours, theirs, ratio, goal, raw=None, ratios=()):
        met = None if goal.holds is None else goal.holds(ratio)
        self.rows.append({"key": key, "what": what, "ours": ours, "theirs": theirs,
                          "ratio": round(ratio, 6), "ratios": [round(each, 6) for each in ratios],
                          "goal": goal.text, "met": met, "raw": raw or {}})
        span = f"{ratio_text(min(ratios))} to {ratio_text(max(ratios))}" if len(ratios) > 1 else ""
        self._print(what, ours, theirs, ratio_text(ratio), span, goal.text,
                    {None: "", True: "yes", False: "**no**"}[met])

    def missing(self, key, what, why):
        self.rows.append({"key": key, "what": what, "not_measured": why})
        self._print(what, f"not measured: {why}", "", "", "", "", "")

    @staticmethod
    def _print(*cells):
        print("| " + " | ".join(cells) + " |", flush=True)

    def write_json(self, path, about):
        with open(path, "w") as out:
            json.dump({**about, "rows": self.rows}, out, indent=1, ensure_ascii=False)
            out.write("\n")


def best_of(rounds_of, lowest=True):
    """The name whose median is the best: a peer is measured in its best setup."""
    pick = min if lowest else max
    return pick(rounds_of, key=lambda name: statistics.median(rounds_of[name]))
