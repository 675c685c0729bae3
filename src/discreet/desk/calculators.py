"""Processes that compute the content of pages. Each does one thing at a time and can be ended.

A computation that takes too long is ended together with its process, and a new process replaces it. So no computation
can block the desk or keep it from closing. Results are kept, and two equal requests at the same time are computed once.
"""

from __future__ import annotations

import asyncio
import atexit
import copyreg
import importlib
import os
import pickle
import resource
import socket
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any

from discreet.desk import tether
from discreet.desk.sandbox import LEAN
from discreet.desk.turns import Turns
from discreet.words.errors import DataError, DiscreetError
from discreet.words.voices import FORM

AT_ONCE, EACH, WAITING = 2, 1, 30
SECONDS = 20
START = 120
"""Seconds that a process has to start, which is once: it imports what it needs."""

MEMORY = 2 * 2**30
KEPT, KEPT_BYTES = 512, 16_000_000
PREPARED = ("discreet.desk.estimates", "discreet.plan.curves")


class TooLong(DiscreetError):
    """A computation was ended because it took too long."""


def _mapping(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda values: (_mapping, (dict(values),)))


class Calculator:
    """One process and the way to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            start = f"from discreet.desk.calculators import main; main({theirs.fileno()}, {tether.line()})"
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-c", start],
                pass_fds=[theirs.fileno(), tether.line()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **LEAN},
                start_new_session=True,
            )
        self.way = Connection(ours.detach())
        self.is_ready = False

    def result(self, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any, int]:
        """What came of it, and its bytes: ("done", a value), ("refused", words) or ("failed", the kind of a fault)."""
        if not self.is_ready:
            self._received(START)
            self.is_ready = True
        self.way.send((work, arguments))
        sent = self._received(seconds)
        state, value = pickle.loads(sent)
        return state, value, len(sent)

    def _received(self, seconds: float) -> bytes:
        if not self.way.poll(seconds):
            raise TimeoutError
        return self.way.recv_bytes()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.way.close()


@dataclass
class Calculators:
    """The processes of a desk; they start when they are needed.

    Attributes
    ----------
    kept : what was computed, with its bytes, the last that was asked for at the end.
    pending : requests that run or wait, by person: nobody waits behind another person.
    """

    turns: Turns = field(default_factory=lambda: Turns("estimates", AT_ONCE, EACH, WAITING))
    idle: list[Calculator] = field(default_factory=list)
    every: set[Calculator] = field(default_factory=set)
    kept: OrderedDict[Hashable, tuple[Any, int]] = field(default_factory=OrderedDict)
    pending: dict[tuple[str, Hashable], asyncio.Task[tuple[Any, int]]] = field(default_factory=dict)
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(AT_ONCE, thread_name_prefix="calculator")
    )
    lock: threading.Lock = field(default_factory=threading.Lock)

    async def result(
        self, who: str, work: Callable[..., Any], *arguments: Any, key: Hashable = None, seconds: float = SECONDS
    ) -> Any:
        """The result of `work` for the arguments; all of them can be sent to a process.

        The result is kept under `key`, if there is one.
        """
        if key is None:
            return (await self._computed(who, work, arguments, seconds))[0]
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key][0]
        own = (who, key)
        if own not in self.pending:
            self.pending[own] = asyncio.create_task(self._computed(who, work, arguments, seconds))
            self.pending[own].add_done_callback(lambda done: self._keep(own, done))
        return (await asyncio.shield(self.pending[own]))[0]

    def _keep(self, own: tuple[str, Hashable], done: asyncio.Task[tuple[Any, int]]) -> None:
        self.pending.pop(own, None)
        if done.cancelled() or done.exception() is not None or done.result()[1] > KEPT_BYTES:
            return
        self.kept[own[1]] = done.result()
        while len(self.kept) > KEPT or sum(size for _, size in self.kept.values()) > KEPT_BYTES:
            self.kept.popitem(last=False)

    async def _computed(
        self, who: str, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float
    ) -> tuple[Any, int]:
        async with self.turns.of(who):
            loop = asyncio.get_running_loop()
            state, value, size = await loop.run_in_executor(self.threads, self._asked, work, arguments, seconds)
        if state == "refused":
            raise DataError(value)
        if state == "failed":
            raise RuntimeError(f"a calculator met {value}")
        return value, size

    def _asked(self, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> tuple[str, Any, int]:
        with self.lock:
            calculator = self.idle.pop() if self.idle else Calculator()
            self.every.add(calculator)
        try:
            found = calculator.result(work, arguments, seconds)
        except TimeoutError:
            self._end(calculator)
            raise TooLong(
                f"This takes more than {seconds:g} seconds to compute. The desk ends it there. Ask for less: other "
                "amounts, fewer releases, fewer values."
            ) from None
        except (EOFError, OSError):
            self._end(calculator)
            raise TooLong(
                "The computation was ended: it needed more memory than the desk gives, or the desk is closing. Ask for "
                "less, or try again."
            ) from None
        with self.lock:
            self.idle.append(calculator)
        return found

    def _end(self, calculator: Calculator) -> None:
        with self.lock:
            self.every.discard(calculator)
        calculator.end()

    def close(self) -> None:
        """End all processes; people who wait for one get an answer."""
        with self.lock:
            idle, busy = self.idle, self.every.difference(self.idle)
            self.idle, self.every = [], set()
        for calculator in idle:
            calculator.end()
        for calculator in busy:
            calculator.process.kill()  # whoever asked it sees the end, and cleans up
            calculator.process.wait()


shared = Calculators()
"""The processes of this server."""

atexit.register(shared.close)


def main(descriptor: int, line: int) -> None:
    """Compute requests until the desk is gone."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tether.hold(line)
    for name in PREPARED:
        importlib.import_module(name)
    way = Connection(descriptor)
    way.send("ready")
    while True:
        try:
            work, arguments = way.recv()
        except EOFError:
            return
        try:
            answer = ("done", work(*arguments))
        except DiscreetError as error:
            answer = ("refused", error.said(FORM))
        except Exception as error:
            answer = ("failed", type(error).__name__)
        way.send(answer)
