"""Brings the faults about and writes the table; started by scripts/fault-table."""
import argparse, glob, os, random, re, subprocess, sys, time
from faults import FAULTS
from page import Page
from booted import BootedMachine
from machine import Machine, STATS

parser = argparse.ArgumentParser(prog="scripts/fault-table")
parser.add_argument("--package")
parser.add_argument("--binary")
parser.add_argument("--short", action="store_true")
parser.add_argument("--seed")
parser.add_argument("--systemd", action="store_true")
parser.add_argument("--only")
parser.add_argument("--write", action="store_true")
options = parser.parse_args()


def newest(pattern):
    found = sorted(glob.glob(pattern))
    if not found:
        sys.exit(f"fault-table: no {pattern}; run make deb")
    return found[-1]


def shown(text):
    """What differs from run to run, out; for one cell of a table."""
    text = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z\b", "TIME", text.strip())
    text = re.sub(r"^\S+ (?=(error|warning|info)\b)", "", text)
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}\b", "ID", text)
    text = re.sub(r"/var/tmp/spoolship-faults-\w+/root", "", text)
    text = re.sub(r"\(pid \d+\)", "(pid …)", text)
    text = re.sub(r"\bprocess \d+", "process …", text)
    text = re.sub(r"\b(\d+(\.\d+)?(ms|m|s|h|d))+\b", "…", text) if "needs a unit" not in text else text
    text = text.replace("|", "\\|")
    return text if len(text) <= 300 else text[:297] + "…"


def line_with(pattern, text):
    lines = [line for line in text.split("\n") if re.search(pattern, line)]
    return lines[-1] if lines else ""


def bring_about(machine, fault):
    machine.reset()
    machine.exit, machine.before_stop, machine.after = None, None, None
    machine.start()
    machine.judge()
    before = set(machine.spoolship("status").split("\n"))
    mark = len(machine.log())
    found = {}
    try:
        fault.do(machine)
        end = time.monotonic() + 60
        fired = set()
        while True:
            fired |= machine.alerts()
            status = machine.spoolship("status")
            if machine.exit is not None and not machine.processes.get("agent"):
                status = machine.spoolship("check")
            code, page = machine.fetch(f"{STATS}/readyz")
            log = machine.log()[mark:]
            if machine.exit is not None:
                # What root sees when looking for the reason.
                status += "\n" + machine.spoolship("check")
            found = {"status": line_with(fault.cause, status), "readyz": line_with(fault.cause, page), "log": line_with(fault.cause, log)}
            leads = any(found.values()) or fault.cause == "(?!)"
            if leads and fired.issuperset(fault.alerts):
                # What comes with it.
                time.sleep(1.5)
                fired |= machine.alerts()
                break
            if time.monotonic() > end:
                break
            time.sleep(0.3)
        ready = {200: "ready", 503: "not ready", 0: "no answer"}.get(code, str(code))
        # More than the word alone names what fails.
        first = page.strip().split("\n")[0] if code == 503 or "; failing: " in page else ""
        exit = f" (exit {machine.exit})" if machine.exit is not None else ""
        news = [line for line in status.split("\n") if line.strip() and line not in before]
        return {
            "name": fault.name, "status": shown(found["status"]), "ready": shown(found["readyz"] or first) or ready,
            "alerts": sorted(fired), "log": (shown(found["log"]) + exit).strip(), "leads": leads,
            "missing": sorted(set(fault.alerts) - fired), "quiet": fault.quiet, "news": news, "text": log[-3000:],
        }
    finally:
        if machine.before_stop:
            machine.before_stop()
        machine.stop()
        if machine.after:
            machine.after()


def code(text):
    """As code, backticks of its own included."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def line(row):
    """A row of the table."""
    alerts = ", ".join(name.removeprefix("Spoolship") for name in row["alerts"]) or (f"none: {row['quiet']}" if row["quiet"] else "none: **a gap**")
    cells = [row["status"], row["ready"], row["log"]]
    status, ready, log = (code(cell) if cell not in ("", "ready", "not ready", "no answer") else cell or "–" for cell in cells)
    return f"| {row['name']} | {status} | {ready} | {alerts} | {log} |"


def main():
    chosen = [f for f in FAULTS if (options.systemd or not f.booted) and (not options.only or re.search(options.only, f.name))]
    if options.short:
        seed = options.seed or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() or str(time.time())
        print(f"drawn with --seed {seed}", flush=True)
        chosen = [f for f in chosen if not f.apart]
        chosen = random.Random(seed).sample(chosen, min(10, len(chosen)))
    machine = (BootedMachine if options.systemd else Machine)(options.package or newest("build/spoolship_*-1_*.deb"), options.binary)
    rows, bad = [], []
    try:
        for number, fault in enumerate(chosen, 1):
            # A machine that is busy with other things may be too slow once.
            for _ in range(2):
                begun = time.monotonic()
                try:
                    row = bring_about(machine, fault)
                except Exception as error:
                    row = {"name": fault.name, "status": "", "ready": "", "alerts": [], "log": f"{error}", "leads": False, "missing": [],
                           "quiet": "", "news": [], "text": machine.log()[-2000:]}
                good = row["leads"] and not row["missing"]
                print(f"{number}/{len(chosen)} {'good' if good else 'BAD '} {fault.name} ({time.monotonic() - begun:.0f} s)", flush=True)
                if not good or os.environ.get("FAULTS_VERBOSE"):
                    for key in ("status", "ready", "alerts", "missing", "log", "news", "text"):
                        print(f"    {key}: {row[key]}", flush=True)
                if good:
                    break
            rows.append(row)
            if not good:
                bad.append(fault.name)
    finally:
        machine.close()
    if options.write:
        # A row that the program did not bring about well is not written: the page says what was seen.
        written = [row for row in rows if row["name"] not in bad] if options.only else rows
        how = "as the unit of the package, under systemd and in its sandbox" if options.systemd else (
            "as its unit starts it (user, capability, no sight of the kernel's clock), without the unit's sandbox")
        page = Page.read()
        # Without systemd the rows of faults that need it stay as they are.
        page.write([f.name for f in FAULTS], {row["name"]: line(row) for row in written}, how, keep=bool(options.only) or not options.systemd)
        print(f"wrote {Page.PATH}")
    print(f"{len(chosen) - len(bad)} of {len(chosen)} faults have a signal that leads to the cause")
    sys.exit(1 if bad else 0)


main()
