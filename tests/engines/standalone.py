"""A standalone Spark cluster on loopback, from the pyspark package: a master and two workers, each its own process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"


class Cluster:
    """Started in `folder`, where logs and the workers' files go."""

    def __init__(self, folder: Path, *, workers: int = 2) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._start("master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        self._await("master", b"I have been elected leader")
        for number in range(workers):
            self.add_worker(f"worker{number}")

    def add_worker(self, name: str) -> None:
        asked = ("--host", "127.0.0.1", "--cores", "1", "--memory", "600M", "--webui-port", "0")
        self._start(name, "worker.Worker", *asked, "--work-dir", str(self.folder / name), self.master)
        self._await(name, b"Successfully registered with master")

    def kill_worker(self, name: str) -> None:
        """End a worker and its executors at once, as a machine that loses its power."""
        worker = self.processes.pop(name)
        children = Path(f"/proc/{worker.pid}/task")
        executors = [int(pid) for task in children.iterdir() for pid in (task / "children").read_text().split()]
        for pid in (worker.pid, *executors):
            os.kill(pid, signal.SIGKILL)
        worker.wait()

    def executors(self, name: str) -> list[Path]:
        """The folders of a worker's executors."""
        return list((self.folder / name).glob("app-*/*"))

    def close(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, daemon: str, *asked: str) -> None:
        spec = find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        home = Path(spec.origin).parent
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": OPTIONS,
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *asked],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    def _await(self, name: str, words: bytes, seconds: float = 180) -> None:
        log, end = self.folder / f"{name}.log", time.monotonic() + seconds
        while words not in log.read_bytes():
            assert self.processes[name].poll() is None and time.monotonic() < end, log.read_text()[-2000:]
            time.sleep(0.2)
