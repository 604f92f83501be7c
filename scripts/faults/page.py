"""The page that the program writes, docs/contributing/faults.md: a head, and a row for each fault, in the program's order."""
import os, sys


class Page:
    PATH = "docs/contributing/faults.md"
    HEAD = "scripts/faults/head.md"
    TITLES = ["| fault | `status` | `/readyz` | alerts | log |", "| --- | --- | --- | --- | --- |"]

    def __init__(self, rows):
        # The lines of the table by the names of their faults.
        self.rows = rows

    @classmethod
    def read(cls):
        lines = open(cls.PATH).read().split("\n")
        rows = [line for line in lines if line.startswith("| ") and line not in cls.TITLES]
        return cls({line[2:].split(" | ")[0]: line for line in rows})

    def write(self, names, rows, how, keep):
        """Writes the rows of these faults; with `keep` the others stay as they are."""
        rows = {**(self.rows if keep else {}), **rows}
        self.rows = {name: rows[name] for name in names if name in rows}
        head = open(self.HEAD).read().replace("COUNT", str(len(self.rows))).replace("HOW", how)
        open(self.PATH, "w").write(head + "\n" + "\n".join([*self.TITLES, *self.rows.values()]) + "\n")

    def check(self, names):
        """What the page and the program do not share: a fault without a row was never seen, a row without a fault is old."""
        found = list(self.rows)
        wrong = [f"{self.PATH}: no row for the fault \"{name}\": scripts/fault-table --systemd --only \"{name}\" --write" for name in names if name not in found]
        wrong += [f"{self.PATH}: the row \"{name}\" has no fault in scripts/faults/faults.py" for name in found if name not in names]
        if not wrong and found != list(names):
            wrong.append(f"{self.PATH}: the rows are in another order than the faults")
        if not wrong and f"How {len(found)} faults" not in open(self.PATH).read():
            wrong.append(f"{self.PATH}: the number of faults in its first sentence is not {len(found)}")
        return wrong


if __name__ == "__main__":
    from faults import FAULTS
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    wrong = Page.read().check([fault.name for fault in FAULTS])
    sys.exit("\n".join(wrong) if wrong else 0)
