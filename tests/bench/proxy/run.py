#!/usr/bin/python3
"""run.py - lbproxy beside nginx and haproxy: processor time a request, requests a second, latency and memory.

The proxy has one core for itself, h2load and the origin the other. A row is a number of clients and a size of body. In
each row the proxies start afresh, then rounds alternate among them: first at full load, then at 60 % of the peak of the
slowest. Needs a quiet machine with two cores: what others take of them is measured and reported. All on loopback, in a
temporary folder; nothing is left running."""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from statistics import median

sys.dont_write_bytecode = True  # nothing of ours stays in the tree

import measure  # noqa: E402
import servers  # noqa: E402
import table  # noqa: E402

PROXIES = ("lbproxy", "nginx", "haproxy")


def numbers(text):
    return [int(word) for word in text.split(",")]


def read_arguments():
    parser = argparse.ArgumentParser(description="lbproxy beside nginx and haproxy.")
    parser.add_argument("built", metavar="DIRECTORY", help="of the release build: lbproxy and bench/origin")
    parser.add_argument("--rounds", type=int, default=5, help="of each proxy in each row (5)")
    parser.add_argument("--seconds", type=int, default=2, help="of a measurement (2)")
    parser.add_argument("--clients", type=numbers, default=[8, 64, 512], help="of the rows (8,64,512)")
    parser.add_argument("--bodies", type=numbers, default=[128, 16384], help="of the rows, in bytes (128,16384)")
    parser.add_argument("--only", default=",".join(PROXIES), help="some of lbproxy,nginx,haproxy")
    parser.add_argument("--cores", type=numbers, help="for load and origin, for the proxy (the first two allowed)")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS",
                        help="waiting, and measuring again, while others use the cores (120)")
    parser.add_argument("--output", metavar="FILE", help="the table, also there")
    arguments = parser.parse_args()
    arguments.only = [name for name in PROXIES if name in arguments.only.split(",")]
    arguments.cores = arguments.cores or sorted(os.sched_getaffinity(0))[:2]
    if not arguments.only or len(arguments.cores) != 2 or arguments.rounds < 1 or arguments.seconds < 1:
        parser.error("two cores, a proxy, a round and a second are the least")
    return arguments


def say(text):
    print(text, file=sys.stderr, flush=True)


def column(rounds, key):
    return [each[key] for each in rounds]


class Bench:
    """What a run has open: the origin, and the proxies of the row under way."""

    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        self.machine = measure.Machine(*arguments.cores, arguments.patience)
        self.proxies = []
        self.origin = servers.start_origin(arguments.built, arguments.bodies, self.machine.load_core)

    def start_proxies(self):
        for name in self.arguments.only:
            proxy = servers.start_proxy(name, self.arguments.built, self.directory, self.origin,
                                        self.machine.proxy_core)
            self.proxies.append(proxy)
            servers.check_proxy(proxy, self.arguments.bodies)

    def end_proxies(self):
        while self.proxies:
            self.proxies.pop().end()

    def end(self):
        self.end_proxies()
        self.origin.end()

    def alternate(self, take):
        """Returns {name: [take(proxy) of each round]}."""
        rounds = {proxy.name: [] for proxy in self.proxies}
        for _ in range(self.arguments.rounds):
            for proxy in self.proxies:
                rounds[proxy.name].append(take(proxy))
        return rounds

    def row(self, clients, size):
        seconds = self.arguments.seconds
        common = {"machine": self.machine, "origin": self.origin, "clients": clients, "size": size, "seconds": seconds}
        self.start_proxies()
        for proxy in self.proxies: # their links and their memory are there before the first round
            measure.run_h2load(proxy, clients, size, 1)
        full = self.alternate(lambda proxy: measure.full_load(proxy=proxy, **common))
        memory = {proxy.name: measure.memory(proxy.pid) for proxy in self.proxies}
        rate = 0.6 * min(median(column(rounds, "rps")) for rounds in full.values())
        log = os.path.join(self.directory, "h2load.log")
        fixed = self.alternate(lambda proxy: measure.fixed_rate(proxy=proxy, rate=rate, log=log, **common))
        self.end_proxies()
        return {"clients": clients, "body": size, "rate": rate,
                "results": {name: self.result(full[name], fixed[name], memory[name]) for name in full}}

    @staticmethod
    def result(full, fixed, memory):
        return {"us": column(full, "us"), "system": column(full, "system"), "rps": column(full, "rps"),
                "share": column(full, "share"), "fixed_us": column(fixed, "us"), "fixed_rps": column(fixed, "rps"),
                "p50": column(fixed, "p50"), "p99": column(fixed, "p99"), "pss": memory[0], "peak": memory[1],
                "others": max(column(full, "others") + column(fixed, "others"))}


def versions(names):
    """First lines, so that a table says what it is of."""
    told = {}
    for name, option in (("nginx", "-v"), ("haproxy", "-v"), ("h2load", "--version")):
        if name in names or name == "h2load":
            run = subprocess.run([servers.program(name), option], capture_output=True, text=True)
            told[name] = (run.stdout + run.stderr).splitlines()[0]
    return told


def round_figures(value):
    """JSON of a length that can be read."""
    if isinstance(value, dict):
        return {key: round_figures(each) for key, each in value.items()}
    if isinstance(value, list):
        return [round_figures(each) for each in value]
    return round(value, 3) if isinstance(value, float) else value


def measure_all(arguments, directory):
    bench = Bench(arguments, directory)
    rows = []
    try:
        for size in arguments.bodies:
            for clients in arguments.clients:
                rows.append(bench.row(clients, size))
                figures = ", ".join(f"{name} {median(result['us']):.1f} µs, p99 {median(result['p99']):.0f} µs"
                                    for name, result in rows[-1]["results"].items())
                say(f"{clients} clients, {size} B: {figures}; {bench.machine.patience:.0f} s of patience left")
    finally:
        bench.end()
    return rows


def main():
    arguments = read_arguments()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    directory = tempfile.mkdtemp(prefix="linkpool-bench-proxy.")
    try:
        told = versions(arguments.only)
        rows = measure_all(arguments, directory)
    except (measure.Wrong, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"run.py: {error}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    text = table.markdown(arguments.only, rows)
    if arguments.output:
        with open(arguments.output, "w") as file:
            file.write(text)
    print(text)
    print(json.dumps(round_figures({"rounds": arguments.rounds, "seconds": arguments.seconds, "versions": told,
                                    "rows": rows})))


if __name__ == "__main__":
    main()
