#!/usr/bin/python3
"""run.py - lbproxy's HTTP mode byte by byte: clients and backends of our own on real sockets.

Usage: run.py DIRECTORY [CASE...]    the one with lbproxy in it; a case by its name, or the beginning of names
       run.py --table FILE           whether the table names each case, and nothing else
       run.py --list

On loopback, at ports that the system picks, in a temporary folder; nothing is left running. Each case is a process
with a group of its own. A line a case, then their sum; exit status 0 only if all passed."""
import importlib
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
AT_ONCE = 4
MOST = 60  # seconds a case may take
MOST_SAID = 3000  # bytes that a failed case may say
FIRST = "VD"  # these take longest, so they begin first


def load():
    sys.path.insert(0, str(HERE))
    for module in sorted((HERE / "cases").glob("*.py")):
        importlib.import_module("cases." + module.stem)
    return sys.modules["kit"].CASES


def run_case(name, function, programs, folder):
    """In the case's own process: what it says goes to a file, its exit status is the verdict."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    said = os.open(folder / "said", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    signal.alarm(MOST)
    case = sys.modules["kit"].Case(programs, folder)
    try:
        function(case)
        case.end()
    except BaseException as fault:
        lines = traceback.extract_tb(fault.__traceback__)
        where = next((line for line in reversed(lines) if "/cases/" in line.filename), lines[-1])
        print(f"{pathlib.Path(where.filename).name}:{where.lineno}: {type(fault).__name__}: {fault}")
        for said in {proxy.errors()[-2000:] for proxy in case.proxies} - {""}:
            if "stderr" not in str(fault):
                print("lbproxy said:", said)
        return 1
    return 0


class Run:
    def __init__(self, programs, cases):
        self.programs, self.under_way, self.verdicts = programs, {}, {True: 0, False: 0}
        self.left = sorted(cases.items(), key=lambda item: not item[0].startswith(FIRST))
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="linkpool-http."))

    def launch(self, name, function):
        folder = self.folder / name
        folder.mkdir()
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = run_case(name, function, self.programs, folder)
            sys.stdout.flush()
            os._exit(status)
        self.under_way[pid] = name, time.monotonic()

    def finish(self, pid, status):
        name, began = self.under_way.pop(pid)
        end_group(pid)
        said = (self.folder / name / "said").read_text(errors="replace").rstrip("\n")
        passed = status == 0
        self.verdicts[passed] += 1
        notes = "".join(", " + line[6:] for line in said.split("\n") if line.startswith("note: "))
        took = (time.monotonic() - began) * 1000
        print(f"{'passed ' if passed else 'FAILED '} {name} ({took:.0f} ms){notes if passed else ''}")
        if not passed:
            print(f"        {said[:MOST_SAID] or 'ended by its alarm, or by another signal'}".replace(
                "\n", "\n        "))
        sys.stdout.flush()

    def all(self):
        try:
            while self.left or self.under_way:
                while self.left and len(self.under_way) < AT_ONCE:
                    self.launch(*self.left.pop(0))
                self.finish(*os.wait())
        finally:
            for pid in self.under_way:
                end_group(pid)
            shutil.rmtree(self.folder, ignore_errors=True)
        print(f"{self.verdicts[True]} passed, {self.verdicts[False]} failed")
        return 0 if self.verdicts[False] == 0 and self.verdicts[True] > 0 else 1


def end_group(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def check_table(path, cases):
    """Each name in the cells of the table of features is a case, and each case is in a cell."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    rows = text.partition("| feature |")[2].partition("\n\n")[0].split("\n")[2:]
    named = {name for row in rows for cell in row.split("|")[2:] for name in re.findall("`([^`]*)`", cell)}
    for name in sorted(named - set(cases)):
        print(f"{path}: `{name}` is no case")
    for name in sorted(set(cases) - named):
        print(f"{path}: the case `{name}` is in no cell")
    return 0 if named == set(cases) else 1


def main(words):
    if not words:
        print("run.py: the directory of the programs is missing", file=sys.stderr)
        return 2
    cases = load()
    if words[0] == "--table":
        return check_table(words[1], cases)
    if words[0] == "--list":
        print("\n".join(cases))
        return 0
    for word in words[1:]:
        if not any(name.startswith(word) for name in cases):
            print(f"run.py: {word}: no such case", file=sys.stderr)
            return 2
    chosen = {
        name: function
        for name, function in cases.items() if len(words) == 1 or any(name.startswith(word) for word in words[1:])
    }
    os.environ.setdefault("ASAN_OPTIONS", "abort_on_error=1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return Run(os.path.abspath(words[0]), chosen).all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
