#!/usr/bin/env python3
"""killed.py - a server killed (kill -9) and started again 20 times under 64 callers that add by call id.

Usage: killed.py DIRECTORY [SEED]        where add_server and adders are
       killed.py DIRECTORY --controls    planted faults: each must turn the comparison red, for its reason

The server keeps a ledger of what it added, the callers one of what they were told, a byte an id. At the end: each id
that was answered is counted once, none that was not sent is counted, of the others each once at most, so that the
server's total lies between what was answered and what was sent; each call was told exactly once; and after each start
the first answer came within 2.5 s of listening. Nothing here sleeps: a server is killed after so many answers, at once,
or as soon as it listens, and started again after so many calls have failed, all drawn from SEED."""

import os
import random
import subprocess
import sys
import tempfile
import threading
import queue

KILLS = 20
RESUME = 2.5  # seconds from listening to the first answer
PATIENCE = 60  # seconds for anything at all
ANSWERED, NOT_SENT, MAYBE = 1, 2, 3  # tests/framed/ledger.h
STALLS = 3  # of the kills: the server stays away for so long that backoffs are at their longest


class Red(Exception):
    """What must hold did not."""


class Program:
    """A program whose lines are read in a thread; next() waits for one that begins with a word."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = queue.Queue()
        self.latest = {}  # first word: the last line's words
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.split())
        self.lines.put(None)

    def next(self, word):
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise Red(f"no line '{word}' within {PATIENCE} s") from None
            if line is None:
                raise Red(f"ended without a line '{word}': exit status {self.process.wait()}")
            self.latest[line[0]] = line[1:]
            if line[0] == word:
                return line[1:]

    def until(self, word, number):
        """Until its count has grown by so many from now on."""
        begin = int(self.latest.get(word, ["0"])[0])
        while number > 0 and int(self.latest.get(word, ["0"])[0]) < begin + number:
            self.next(word)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()


class Run:
    def __init__(self, directory, kills, seed, server_fault, caller_fault):
        self.directory, self.kills, self.draw = directory, kills, random.Random(seed)
        self.server_fault, self.caller_fault = server_fault, caller_fault
        self.resumed, self.number, self.address = [], 0, "127.0.0.2:0"  # where no client's own port can be
        self.server = self.callers = None

    def start_server(self):
        self.number += 1
        command = [f"{self.directory}/add_server", self.address, str(self.number), f"{self.folder}/counted"]
        self.server = Program(*command, *self.server_fault)
        _, self.address, listening = self.server.next("listening")
        self.listening = float(listening)

    def kill_server(self):
        self.server.end()  # SIGKILL

    def await_answer(self):
        """The first answer of this server."""
        number, when = 0, 0
        while int(number) != self.number:
            number, when = self.callers.next("resumed")
        self.resumed.append(float(when) - self.listening)

    def one_kill(self, i):
        if self.draw.random() < 0.25:  # before it has answered anything, perhaps
            self.kill_server()
            self.start_server()
        self.await_answer()
        self.callers.until("answered", self.draw.choice((0, 50, 100, 500, 3000)))
        self.kill_server()
        stalls = self.kills == KILLS and i % (KILLS // STALLS) == 1
        self.callers.until("failed", 2500 if stalls else self.draw.choice((0, 0, 20, 200)))
        self.start_server()

    def play(self):
        with tempfile.TemporaryDirectory() as self.folder:
            self.start_server()
            self.callers = Program(
                f"{self.directory}/adders", self.address, f"{self.folder}/told", *self.caller_fault
            )
            for i in range(self.kills):
                self.one_kill(i)
            self.await_answer()
            self.callers.until("answered", 3000)
            self.callers.process.stdin.close()
            words = self.callers.next("started")
            figures = dict(zip(["started", *words[1::2]], map(int, words[::2])))
            if self.callers.process.wait(PATIENCE) != 0:
                raise Red("the callers ended with a fault")
            with open(f"{self.folder}/counted", "rb") as counted, open(f"{self.folder}/told", "rb") as told:
                n = figures["started"]
                compare(counted.read(n), told.read(n), figures)
        self.judge(figures)
        return figures

    def judge(self, figures):
        slowest = max(self.resumed)
        if slowest > RESUME:
            raise Red(f"calls went on {slowest:.3f} s after the server listened")
        if not (figures["maybe"] and figures["not_sent"] and figures["asked_again"]) and self.kills == KILLS:
            raise Red(f"it met too little: {figures}")

    def close(self):
        for program in self.server, self.callers:
            if program:
                program.end()


def compare(counted, told, figures):
    """What the server counted, and what the callers were told, by id."""
    if figures["told"] != figures["started"]:
        raise Red(f"{figures['started']} calls, {figures['told']} told")
    for i, (count, fate) in enumerate(zip(counted, told)):
        if fate not in (ANSWERED, NOT_SENT, MAYBE):
            raise Red(f"id {i}: nothing was told")
        if fate == ANSWERED and count == 0:
            raise Red(f"id {i}: answered, and not counted")
        if fate == NOT_SENT and count > 0:
            raise Red(f"id {i}: not sent, and counted")
        if count > 1:
            raise Red(f"id {i}: counted {count} times")
    answered, sent, total = told.count(ANSWERED), len(told) - told.count(NOT_SENT), sum(counted)
    if (answered, sent) != (figures["answered"], figures["started"] - figures["not_sent"]):
        raise Red(f"{answered} answered and {sent} sent: {figures}")
    if not answered <= total <= sent:
        raise Red(f"the total is {total}, with {answered} answered and {sent} sent")
    figures["total"], figures["sent"] = total, sent


def play(directory, kills=KILLS, seed=None, server_fault=(), caller_fault=()):
    run = Run(directory, kills, seed, server_fault, caller_fault)
    try:
        return run, run.play()
    finally:
        run.close()


def controls(directory):
    planted = (
        ("counted 2 times", {"server_fault": ("twice",)}),
        ("answered, and not counted", {"server_fault": ("forgets",)}),
        ("after the server listened", {"server_fault": ("late",)}),
        ("not sent, and counted", {"caller_fault": ("lies",)}),
        ("nothing was told", {"caller_fault": ("forgets",)}),
    )
    wrong = 0
    play(directory, kills=2, seed=1)
    print("green, as it should be")
    for words, fault in planted:
        try:
            play(directory, kills=2, seed=1, **fault)
            found = "nothing"
        except Red as red:
            found = str(red)
        if words in found:
            print(f"red, as it should be: {found}", flush=True)
        else:
            wrong += 1
            print(f"NOT red for its reason, {words}: {found}", flush=True)
    return wrong


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    directory = os.path.abspath(sys.argv[1])
    if sys.argv[2:] == ["--controls"]:
        sys.exit(1 if controls(directory) else 0)
    seed = int(sys.argv[2]) if len(sys.argv) == 3 else random.randrange(1 << 32)
    try:
        run, figures = play(directory, seed=seed)
    except Red as red:
        sys.exit(f"killed: seed {seed}: {red}")
    times = sorted(run.resumed)
    print(
        f"killed {run.number - 1} times: {figures['answered']} answered <= {figures['total']} counted <= "
        f"{figures['sent']} sent, of {figures['started']} calls; {figures['not_sent']} not sent and not counted, "
        f"{figures['asked_again']} asked again\n"
        f"calls went on {times[len(times) // 2]:.3f} s after listening, {times[-1]:.3f} s at most (seed {seed})"
    )


main()
