"""Attack on a service: valid clients next to hostile requests and slow connections; then SIGTERM under load.

    python bench/serve_load.py RUN --attack 600 [--clients 64] [--slow 1000] [--hostile 4] [--json FILE]

The service and all clients run on this machine and use its loopback address. Slow connections send nothing,
half of the headers or half of a body, trickle bytes, or are idle after a response; a closed one is opened again
after a second. Hostile clients send the requests of ``serve_load.hostile`` one after the other. Valid clients
send one request at a time, with a pause. It fails if a valid response is missing, wrong or takes more than five
seconds, if any status is 5xx, if memory grows, or if SIGTERM loses a request that was sent before it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import time
from collections import Counter
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from serve_load import (
    PREDICT,
    Client,
    as_request,
    expected_responses,
    hostile,
    is_same,
    processor_time,
    serving,
    valid_requests,
)

MAX_SECONDS = 5.0  # of a valid response
MAX_GROWTH = 1.1  # of the memory in the second half, relative to the first
PAUSE = 1.0  # seconds between the requests of a valid client, and between hostile requests


class Attack:
    """Traffic for some seconds, with its counts."""

    def __init__(self, host: str, port: int, process: int, texts: list[bytes], truth: list[bytes], seconds: float) -> None:
        self.place, self.process, self.texts, self.truth = (host, port), process, texts, truth
        self.end = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.hostile_latencies: list[float] = []
        self.memory: list[int] = []  # MiB
        self.problems: Counter[str] = Counter()
        self.slow_now = 0

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.end

    async def valid(self, client: Client, first: int) -> None:
        for number in cycle([*range(first, len(self.texts)), *range(first)]):
            if self.is_over:
                return
            start = time.perf_counter()
            status, body = await client.predict(self.texts[number])
            self.latencies.append(time.perf_counter() - start)
            self.check(number, status, body)
            await asyncio.sleep(PAUSE)

    def check(self, number: int, status: int, body: bytes) -> None:
        self.counts["valid"] += 1
        if status != 200:
            self.problems[f"valid request: status {status}"] += 1
        elif body != self.truth[number] and not is_same(json.loads(body), json.loads(self.truth[number])):
            self.problems["valid request: wrong response"] += 1

    async def hostile(self, first: int) -> None:
        requests = list(hostile())
        for name, raw, statuses in cycle([*requests[first:], *requests[:first]]):
            if self.is_over:
                return
            client, start = Client(*self.place), time.perf_counter()
            try:
                status, _ = await asyncio.wait_for(client.send(raw), 60)
            except TimeoutError:
                status = -1
            client.close()
            self.hostile_latencies.append(time.perf_counter() - start)
            self.counts["hostile"] += 1
            self.counts[f"hostile {status}"] += 1
            if status >= 500 or status not in {*statuses, 0}:
                self.problems[f"{name}: status {status}"] += 1
            await asyncio.sleep(PAUSE)

    async def slow(self, kind: int) -> None:
        """Hold a connection open, and open it again after it is closed."""
        body = as_request(text="Paris Oslo\n" * 2000)
        while not self.is_over:
            self.slow_now += 1
            try:
                reader, writer = await asyncio.wait_for(asyncio.open_connection(*self.place), 20)
                self.counts["slow connections"] += 1
                try:
                    await self.hold(kind % 6, reader, writer, body)
                finally:
                    writer.transport.abort()
            except (OSError, TimeoutError):
                self.counts["slow connections reset"] += 1
            finally:
                self.slow_now -= 1
            await asyncio.sleep(1)

    async def hold(self, kind: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
        head = PREDICT % len(body)
        get = b"GET /health HTTP/1.1\r\nhost: localhost\r\n"
        sent = (b"", head[:30], head + body[:50], head, get + b"x: ", get + b"\r\n")  # the last one is answered, then idle
        writer.write(sent[kind])
        for number in range(60):
            try:
                if await asyncio.wait_for(reader.read(10_000), 1) == b"":
                    return
            except TimeoutError:
                if self.is_over:
                    return
            if kind == 3:
                writer.write(body[number : number + 1])
            elif kind == 4:
                writer.write(b"a")

    async def watch_memory(self) -> None:
        while not self.is_over:
            lines = Path(f"/proc/{self.process}/status").read_text().splitlines()
            self.memory.append(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS")))
            self.counts["most slow connections at once"] = max(self.counts["most slow connections at once"], self.slow_now)
            await asyncio.sleep(1)

    async def stop(self, clients: list[Client]) -> None:
        """Send a request from each client, then SIGTERM; all must be answered."""
        for client in clients:
            client.close()
            client.streams = await asyncio.open_connection(*client.place, limit=2**26)

        async def one(client: Client, number: int) -> None:
            status, body = await client.predict(self.texts[number])
            self.counts["during shutdown"] += 1
            self.check(number, status, body)

        tasks = [asyncio.create_task(one(client, number)) for number, client in enumerate(clients)]
        await asyncio.sleep(0.02)  # all bytes are on their way
        os.kill(self.process, signal.SIGTERM)
        await asyncio.gather(*tasks)


async def attack(arguments: argparse.Namespace, host: str, port: int, process: int) -> dict[str, Any]:
    texts = valid_requests()
    truth = await expected_responses(Client(host, port), texts)
    clients = [Client(host, port) for _ in range(arguments.clients)]
    run = Attack(host, port, process, texts, truth, arguments.attack)
    before = processor_time(process)
    background = [
        *(asyncio.create_task(run.slow(kind)) for kind in range(arguments.slow)),
        *(asyncio.create_task(run.hostile(11 * number % 40)) for number in range(arguments.hostile)),
        asyncio.create_task(run.watch_memory()),
    ]
    await asyncio.gather(*(run.valid(client, number * len(texts) // len(clients)) for number, client in enumerate(clients)))
    computed = processor_time(process) - before
    await run.stop(clients)
    await asyncio.wait(background, timeout=30)
    half = len(run.memory) // 2
    first, second = max(run.memory[:half], default=0), max(run.memory[half:], default=0)
    if second > MAX_GROWTH * first:
        run.problems[f"memory grew from {first} to {second} MiB"] += 1
    if max(run.latencies) > MAX_SECONDS:
        run.problems[f"a valid response took {max(run.latencies):.1f} s"] += 1
    return {
        "seconds": arguments.attack,
        "counts": dict(run.counts),
        "valid_latency": quantiles(run.latencies),
        "hostile_latency": quantiles(run.hostile_latencies),
        "memory_mib": {"start": run.memory[0], "first_half": first, "second_half": second, "end": run.memory[-1]},
        "cpu_seconds": round(computed),
        "load_average": os.getloadavg(),
        "problems": dict(run.problems),
    }


def quantiles(seconds: list[float]) -> dict[str, float]:
    points = {"median": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: round(float(np.percentile(seconds, point)), 3) for name, point in points.items()} if seconds else {}


def run(arguments: argparse.Namespace) -> str | None:
    """Run the attack; return the reason of a failure."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, arguments.slow + 1024), hard), hard))
    with serving(arguments.run, arguments.threads, stops=False) as (host, port, process):
        result = asyncio.run(attack(arguments, host, port, process))
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    return f"FAILED: {result['problems']}" if result["problems"] else None
