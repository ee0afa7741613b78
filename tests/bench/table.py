"""The table of tests/bench/run: one row for each thing measured, its peer, and the goal."""
import json


class Goal:
    def __init__(self, text, holds):
        self.text, self.holds = text, holds


def at_most(limit):
    return Goal(f"≤ {limit:g}×", lambda ratio: ratio <= limit)


def at_least(limit):
    return Goal(f"≥ {limit:g}×", lambda ratio: ratio >= limit)


NO_GOAL = Goal("", None)


class Report:
    """Prints each row as it comes; keeps all for the JSON."""

    COLUMNS = ("what; beside what", "ours", "theirs", "ratio", "goal", "met")

    def __init__(self):
        self.rows = []
        print("| " + " | ".join(self.COLUMNS) + " |")
        print("| --- | ---: | ---: | ---: | ---: | --- |", flush=True)

    def row(self, key, what, ours, theirs, ratio, goal, raw=None):
        met = None if goal.holds is None else goal.holds(ratio)
        self.rows.append({"key": key, "what": what, "ours": ours, "theirs": theirs,
                          "ratio": round(ratio, 6), "goal": goal.text, "met": met,
                          "raw": raw or {}})
        self._print(what, ours, theirs, f"{ratio:.3f}" if ratio >= 0.01 else f"1/{1 / ratio:,.0f}", goal.text,
                    {None: "", True: "yes", False: "**no**"}[met])

    def missing(self, key, what, why):
        self.rows.append({"key": key, "what": what, "not_measured": why})
        self._print(what, f"not measured: {why}", "", "", "", "")

    @staticmethod
    def _print(*cells):
        print("| " + " | ".join(cells) + " |", flush=True)

    def write_json(self, path, about):
        with open(path, "w") as out:
            json.dump({**about, "rows": self.rows}, out, indent=1, ensure_ascii=False)
            out.write("\n")
