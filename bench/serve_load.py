"""Load test of a service: many concurrent clients compared with one, with every response checked.

    python bench/serve_load.py RUN [--clients 64] [--seconds 60] [--rounds 6] [--threads 1] [--ratio 3] [--json FILE]

The service runs in a separate process with its default limits. Texts are sentences of the bundled corpus,
each with a number, so no two responses are equal. The expected response is that of a single request. One
client and many clients take turns, so other load affects both; ``--seconds`` is the total time of the
many. The CPU time of the service per request is also reported, because it does not depend on other load.
A response is correct if it has the same sentences, entities and relations; scores may differ by 1e-5,
because sums are rounded differently in batches of different shapes. Hostile requests follow at the end;
the service must reject or answer them and keep running.

    python bench/serve_load.py RUN --attack 600 [--clients 64] [--slow 1000] [--hostile 4]

sends valid requests next to hostile ones and slow connections for 600 seconds (bench/serve_attack.py).

A transformer on a CPU keeps the processor busy, so it gains less from batches than a recurrent encoder:
use ``--ratio 1.5``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import spanwise

NEAR = 1e-5
TEXTS = 320
PREDICT = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
Reply = tuple[int, bytes]  # status and body; status 0: the connection was closed without a response


@contextmanager
def serving(run: str, threads: int, *, stops: bool = True) -> Iterator[tuple[str, int, int]]:
    """Run a service in a separate process; yield host, port and process. Without ``stops`` the caller ends it."""
    command = [sys.executable, "-m", "spanwise", "serve", run, "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            address = urlsplit(next(word for word in line.split() if word.startswith("http")))
            assert address.hostname is not None
            assert address.port is not None
            yield address.hostname, address.port, process.pid
            if stops:
                process.send_signal(signal.SIGTERM)
            print(f"stopped by SIGTERM with code {process.wait(60)}")
        finally:
            process.kill()


class Client:
    """A persistent connection."""

    def __init__(self, host: str, port: int) -> None:
        self.place = host, port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def predict(self, body: bytes) -> Reply:
        return await self.send(PREDICT % len(body) + body)

    async def send(self, raw: bytes) -> Reply:
        if self.streams is None:
            self.streams = await asyncio.open_connection(*self.place, limit=2**26)
        reader, writer = self.streams
        try:
            writer.write(raw)
            await writer.drain()
            head = await reader.readuntil(b"\r\n\r\n")
            headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
            reply = int(head.split()[1]), await reader.readexactly(int(headers.get(b"content-length", 0)))
            if headers.get(b"connection") == b"close":
                self.close()
            return reply
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0, b""

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
        self.streams = None


def as_request(**values: Any) -> bytes:
    return json.dumps(values).encode()


def is_same(one: Any, other: Any) -> bool:
    """Return True if two values are equal, except for the last digits of floats."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float):
        return isinstance(other, float) and abs(one - other) <= NEAR
    return bool(one == other)


def processor_time(process: int) -> float:
    """Return the CPU seconds of a process and its threads so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(process: int, clients: list[Client], texts: list[bytes], truth: list[bytes], seconds: float) -> Counter[str]:
    """Send texts from several clients, each one request at a time; return the outcomes."""
    counts: Counter[str] = Counter()
    before = processor_time(process)
    end = time.perf_counter() + seconds

    async def one(client: Client, first: int) -> None:
        for number in cycle([*range(first, len(texts)), *range(first)]):
            if time.perf_counter() > end:
                return
            status, body = await client.predict(texts[number])
            counts["sent"] += 1
            if status != 200:
                counts[f"status {status}"] += 1
            elif body == truth[number]:
                counts["equal"] += 1
            else:
                counts["near" if is_same(json.loads(body), json.loads(truth[number])) else "WRONG"] += 1

    start_time = time.perf_counter()
    await asyncio.gather(*(one(client, number * len(texts) // len(clients)) for number, client in enumerate(clients)))
    counts["milliseconds"] = int(1000 * (time.perf_counter() - start_time))
    counts["computed"] = int(1000 * (processor_time(process) - before))
    return counts


def hostile() -> Iterator[tuple[str, bytes, set[int]]]:
    """Yield hostile requests with the accepted statuses (0: no response)."""
    post = b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"

    def body(content: bytes) -> bytes:
        return PREDICT % len(content) + content

    yield "10 MB body", body(as_request(text="a " * 5_000_000)), {413}
    yield "content length of 1 TB", post + b"content-length: 1000000000000\r\n\r\n{", {413}
    yield (
        "10 MB in chunks",
        post + b"transfer-encoding: chunked\r\n\r\n" + (b"100000\r\n" + b" " * 2**20 + b"\r\n") * 10 + b"0\r\n\r\n",
        {413},
    )
    yield "invalid UTF-8", body(b'{"text": "\xff\xfe\xc0"}'), {400}
    yield "a word of a million letters", body(as_request(text="x" * 1_000_000)), {413}
    yield "a word of the maximum length", body(as_request(text="x" * 100_000)), {200}
    yield "a sentence of 50,000 words", body(as_request(text="a " * 50_000)), {422}
    yield "a sentence of the maximum length", body(as_request(text="Paris " * 1000)), {200}
    yield "the same with the lowest threshold", body(as_request(text="Paris " * 1000, threshold=1e-300)), {200, 504}
    yield "100,000 letters with line ends", body(as_request(text="Paris Oslo\n" * 9000)), {200, 504}
    yield "a normal request after it", body(as_request(text="Paris")), {200}
    yield "100,000 marks", body(as_request(text="?!" * 50_000)), {422}
    yield "100,000 line ends", body(as_request(text="\n" * 100_000)), {200}
    yield "1,000 blank texts", body(as_request(texts=[" "] * 1000)), {200}
    yield "100,000 blank texts", body(as_request(texts=[" "] * 100_000)), {413}
    yield "690,000 empty texts", body(b'{"texts": [' + b'"",' * 690_000 + b'""]}'), {413}
    yield "a million numbers as tokens", body(b'{"tokens": [' + b"1," * 1_000_000 + b"1]}"), {413}
    yield "90,000 numbers as tokens", body(b'{"tokens": [' + b"1," * 90_000 + b"1]}"), {422}
    yield "50,000 sentences of a word", body(as_request(text="a\n" * 50_000)), {413}
    yield "90,000 keys", body(b"{" + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}"), {422}
    yield "another host", b"GET / HTTP/1.1\r\nhost: example.org\r\n\r\n", {403}
    yield "100,000 accents", body(as_request(text="a" + "\u0301" * 99_999)), {200}
    yield "control characters, raw", body(b'{"text": "a\x00\x1b\x08"}'), {400}
    yield "control characters, escaped", body(as_request(text="".join(map(chr, range(32))) + " \u202e\ufeff\u2028")), {200}
    yield "unassigned and private characters", body(as_request(text="\ue000 \U0010ffff \ufffe \U000e0001")), {200}
    yield "half of a surrogate pair", body(b'{"text": "\\ud800"}'), {422}
    yield "deep JSON", body(b"[" * 1_000_000), {413}
    yield "deep JSON that is closed", body(b'{"text": ' * 20_000 + b"1" + b"}" * 20_000), {400, 422}
    yield "deep JSON in an unknown key", body(b'{"text": "a", "x": ' + b"[" * 500 + b"]" * 500 + b"}"), {422}
    yield "a number of a million digits", body(b'{"text": "a", "threshold": ' + b"9" * 1_000_000 + b"}"), {400}
    yield "no number", body(b'{"text": "a", "threshold": NaN}'), {422}
    yield "blank tokens", body(as_request(tokens=[" ", "\t", "\u3000"])), {200}
    yield "an empty token", body(as_request(tokens=["a", ""])), {422}
    yield "no JSON", body(b"text=a"), {400}
    yield "nothing", body(b""), {422}
    yield (
        "another type",
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: 1\r\n\r\na",
        {415},
    )
    yield "another method", b"DELETE /predict HTTP/1.1\r\nhost: localhost\r\n\r\n", {405}
    yield "another path", b"GET /../../etc/passwd HTTP/1.1\r\nhost: localhost\r\n\r\n", {404}
    yield "no HTTP", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {400}
    yield "a header of a megabyte", b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 2**20 + b"\r\n\r\n", {0, 400, 431}


def valid_requests() -> list[bytes]:
    corpus = spanwise.bundled_corpus()
    sentences = [sentence for split in corpus for sentence in corpus[split]][:TEXTS]
    return [as_request(text=f"{number}: {sentence.text}") for number, sentence in enumerate(sentences)]


async def expected_responses(client: Client, texts: list[bytes]) -> list[bytes]:
    """Return the responses to single requests; all differ."""
    truth = []
    for text in texts:
        status, body = await client.predict(text)
        assert status == 200, body
        truth.append(body)
    assert len(set(truth)) == len(truth), "all responses differ"
    return truth


async def measure(arguments: argparse.Namespace, host: str, port: int, process: int) -> dict[str, Any]:
    texts = valid_requests()
    alone, many = [Client(host, port)], [Client(host, port) for _ in range(arguments.clients)]
    truth = await expected_responses(alone[0], texts)
    count = sum(len(s["entities"]) for body in truth for r in json.loads(body)["results"] for s in r["sentences"])
    print(f"{len(texts)} texts, {count} predicted entities")

    total: Counter[str] = Counter()
    single: Counter[str] = Counter()
    rates = []
    turn = arguments.seconds / arguments.rounds
    for number in range(arguments.rounds):
        one = await load(process, alone, texts, truth, turn / 2)
        several = await load(process, many, texts, truth, turn)
        slow, fast = (1000 * counts["sent"] / counts["milliseconds"] for counts in (one, several))
        rates.append((slow, fast))
        total.update(several)
        single.update(one)
        print(f"turn {number + 1}: one client {slow:.0f}/s, {arguments.clients} clients {fast:.0f}/s, ratio {fast / slow:.2f}")
    for client in many:
        client.close()

    unexpected = []
    for name, raw, statuses in hostile():
        client, start_time = Client(host, port), time.perf_counter()
        status, body = await client.send(raw)
        client.close()
        is_json = status in (0, 400) or isinstance(json.loads(body), dict)  # requests that are not HTTP get no JSON response
        excerpt = body[:90].decode(errors="replace") if status != 200 else ""
        print(f"{name}: {status} {excerpt} ({time.perf_counter() - start_time:.2f} s)")
        if status not in statuses or not is_json:
            unexpected.append(f"{name}: {status}, expected {sorted(statuses)}")
    after = await load(process, [Client(host, port)], texts, truth, 2)
    ratios = [fast / slow for slow, fast in rates]
    memory = [line.split()[1] for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return {
        "one_by_one": statistics.median(slow for slow, _ in rates),
        "together": statistics.median(fast for _, fast in rates),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "counts": dict(total),
        "alone": dict(single),
        "computed_ratio": (single["computed"] / single["sent"]) / (total["computed"] / total["sent"]),
        "unexpected": unexpected,
        "after": dict(after),
        "peak_mib": int(memory[0]) // 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1, help="threads of the service")
    parser.add_argument("--ratio", type=float, default=3.0, help="required throughput relative to one client")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--attack", type=float, default=0, metavar="SECONDS", help="send hostile and slow traffic instead")
    parser.add_argument("--slow", type=int, default=1000, help="slow connections of --attack")
    parser.add_argument("--hostile", type=int, default=4, help="hostile clients of --attack")
    arguments = parser.parse_args()
    if arguments.attack:
        import serve_attack

        sys.exit(serve_attack.run(arguments))
    with serving(arguments.run, arguments.threads) as (host, port, process):
        result = asyncio.run(measure(arguments, host, port, process))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    counts = result["counts"]
    print(f"{arguments.clients} clients, {counts['sent']} requests: {counts}")
    print(f"one client {result['one_by_one']:.0f}/s, many {result['together']:.0f}/s: {result['ratio']:.2f} times")
    print(f"a single request takes {result['computed_ratio']:.2f} times the CPU time of a batched one: {result['alone']}")
    print(f"peak memory of the service {result['peak_mib']} MiB; after the hostile requests {result['after']}")
    bad = [key for key in counts if "status" in key or "WRONG" in key] + [
        key for key in result["after"] if "status" in key or "WRONG" in key
    ]
    if bad or result["unexpected"] or result["ratio"] < arguments.ratio:
        sys.exit(f"FAILED: {bad} {result['unexpected']} ratio {result['ratio']:.2f} (at least {arguments.ratio})")


if __name__ == "__main__":
    main()
