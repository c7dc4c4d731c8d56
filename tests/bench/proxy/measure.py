"""measure.py - one measurement: h2load against one proxy, and what that cost the proxy's processes.

Processor time is the first figure of /proc/PID/schedstat: user and system in nanoseconds, kept by the scheduler. Where
the kernel is built without IRQ_TIME_ACCOUNTING, as Debian's is not, the network's soft interrupts that run on the
proxy's sends are in it. How it splits is from /proc/PID/stat, in ticks. The requests that it is divided by are counted
by the origin: each one served is one that the proxy has carried both ways."""

import os
import re
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")


class Wrong(Exception):
    """What was measured is not what was meant."""


def family(pid):
    """The process and its children: nginx works in a child."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [pid] + [each for child in file.read().split() for each in family(int(child))]


def processor_time(pid):
    """Seconds, of all threads of the family."""
    total = 0
    for member in family(pid):
        for thread in os.listdir(f"/proc/{member}/task"):
            with open(f"/proc/{member}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
    return total / 1e9


def system_share(pid):
    """Ticks as user, ticks as system."""
    user = system = 0
    for member in family(pid):
        with open(f"/proc/{member}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        user += int(fields[11])
        system += int(fields[12])
    return user, system


def memory(pid):
    """Bytes: proportional set size now, and the most that was resident, both summed over the family."""
    pss = peak = 0
    for member in family(pid):
        with open(f"/proc/{member}/smaps_rollup") as file:
            pss += int(re.search(r"^Pss: +(\d+) kB", file.read(), re.M)[1]) * 1024
        with open(f"/proc/{member}/status") as file:
            peak += int(re.search(r"^VmHWM:\s+(\d+) kB", file.read(), re.M)[1]) * 1024
    return pss, peak


def core_busy(core):
    """Seconds that the core was not idle: what ran niced, which keeps its slice, and what the host stole are in it."""
    with open("/proc/stat") as file:
        fields = re.search(rf"^cpu{core} (.*)$", file.read(), re.M)[1].split()
    return sum(int(fields[i]) for i in (0, 1, 2, 5, 6, 7)) / TICK


def settle(pid):
    """Waits until the proxy has nothing left to do: h2load's end leaves it clients to close."""
    before = None
    for _ in range(100):
        now = processor_time(pid)
        if before is not None and now - before < 0.0002:
            return
        before = now
        time.sleep(0.02)


class Machine:
    """The two cores, and how patient we are when others use them."""

    def __init__(self, load_core, proxy_core, patience):
        self.load_core = load_core
        self.proxy_core = proxy_core
        self.patience = patience  # seconds left, for the whole run
        os.sched_setaffinity(0, {load_core})  # h2load inherits it

    def busy(self):
        return core_busy(self.load_core), core_busy(self.proxy_core)

    def wait_until_quiet(self):
        """Until others leave the cores alone, or patience ends."""
        while self.patience > 0:
            before = self.busy()
            time.sleep(0.5)
            self.patience -= 0.5
            if max(now - then for now, then in zip(self.busy(), before)) <= 0.05:
                return


def run_h2load(proxy, clients, size, seconds, extra=()):
    """Runs h2load, on our core. Returns what it did; an answer that is no 2xx is an error."""
    command = ["h2load", "--h1", "-c", str(clients), "-D", str(seconds), *extra, f"http://{proxy.address}/{size}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    counts = re.search(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, "
                       r"(\d+) timeout", run.stdout)
    good = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", run.stdout)
    data = re.search(r"\((\d+)\) data", run.stdout)
    if run.returncode != 0 or not (counts and good and data):
        raise Wrong(f"{proxy.name}: h2load failed\n{run.stdout}{run.stderr}")
    done, succeeded, *bad = map(int, counts.groups())
    if done == 0 or succeeded != done or any(bad) or list(map(int, good.groups())) != [done, 0, 0, 0]:
        raise Wrong(f"{proxy.name}: not all answers were good\n{run.stdout}")
    return {"done": done, "rps": done / seconds, "data": int(data[1]), "size": size}


def read_latencies(path):
    """Sorted microseconds from h2load's log, a line a request: start, status, duration."""
    with open(path) as file:
        lines = [line.split() for line in file]
    if any(status != "200" for _, status, _ in lines):
        raise Wrong(f"{path}: an answer that is no 200")
    return sorted(int(duration) for _, _, duration in lines)


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def check_sizes(proxy, result, served):
    """h2load counts the answers of its warm-up, and what has come of those cut by the end, as bytes only."""
    if not result["done"] * result["size"] <= result["data"] <= served * result["size"]:
        raise Wrong(f"{proxy.name}: {result['data']} bytes of bodies in {result['done']} answers of {result['size']}, "
                    f"of {served} that the origin gave")


def account(machine, proxy, origin, load):
    """Runs load() and returns what it and the proxy did: see the keys."""
    load_busy, proxy_busy = machine.busy()
    used, split = processor_time(proxy.pid), system_share(proxy.pid)
    origin_used, served, times = processor_time(origin.pid), origin.count(), os.times()
    began = time.monotonic()
    result = load()
    wall = time.monotonic() - began
    settle(proxy.pid)
    used = processor_time(proxy.pid) - used
    user, system = (now - then for now, then in zip(system_share(proxy.pid), split))
    served = origin.count() - served
    check_sizes(proxy, result, served)
    now = os.times()
    ours = sum(now[:4]) - sum(times[:4]) + processor_time(origin.pid) - origin_used  # h2load's and this program's too
    load_busy, proxy_busy = (after - before for after, before in zip(machine.busy(), (load_busy, proxy_busy)))
    result.update(us=used / served * 1e6, system=system / max(1, user + system), share=used / wall,
                  others=max(0.0, load_busy - ours, proxy_busy - used) / wall)
    return result


def undisturbed(machine, proxy, origin, load):
    """account(), again while others took more than a twentieth of a core and there is patience left."""
    while True:
        machine.wait_until_quiet()
        began = time.monotonic()
        result = account(machine, proxy, origin, load)
        if result["others"] <= 0.05 or machine.patience <= 0:
            return result
        machine.patience -= time.monotonic() - began


def full_load(machine, proxy, origin, clients, size, seconds):
    """As many requests as go through. Keys: done, rps, us, system (share of the time), share (of the core), others."""
    return undisturbed(machine, proxy, origin, lambda: run_h2load(proxy, clients, size, seconds))


def fixed_rate(machine, proxy, origin, clients, size, seconds, rate, log):
    """`rate` requests a second, from all clients together. Keys: as full_load(), and p50 and p99 in microseconds.

    h2load starts a client's requests when its timer says so, several in a row where its rate is over 100 a second, and
    all clients' timers began together: what is measured is how bursts are served. A request late in its client's line
    counts from when it is sent."""

    def load():
        if os.path.exists(log):
            os.unlink(log)
        result = run_h2load(proxy, clients, size, seconds,
                            ["--warm-up-time", "300ms", "--rps", f"{rate / clients:.3f}", f"--log-file={log}"])
        ordered = read_latencies(log)
        return {**result, "p50": percentile(ordered, 0.5), "p99": percentile(ordered, 0.99)}

    return undisturbed(machine, proxy, origin, load)
