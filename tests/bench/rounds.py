"""What a run cost in figures; one upload into a sink of its own, checked; and the rounds in which clients take turns."""

import json
import statistics
import sys
import time

import files
from sink import Sink

MIB, GIB = files.MIB, files.GIB


def figures_of(job, cost, service, service_s, requests):
    """What a run cost by the byte or by the file, by name; `service_s` is the processor time of the `service` meanwhile."""
    figures = {"wall s": cost.wall_s}
    if job.is_large:
        figures["Gbit/s"] = job.size * 8 / cost.wall_s / 1e9
        figures["client CPU s/GiB"] = cost.cpu_s / job.size * GIB
        figures["of it user"] = cost.user_s / job.size * GIB
        figures[f"{service} CPU s/GiB"] = service_s / job.size * GIB
    else:
        figures["files/s"] = job.count / cost.wall_s
        figures["client CPU us/file"] = cost.cpu_s / job.count * 1e6
        figures["of it user"] = cost.user_s / job.count * 1e6
        figures[f"{service} CPU us/file"] = service_s / job.count * 1e6
    figures["anonymous MiB"] = cost.peak_anonymous_bytes / MIB
    figures["mapped MiB"] = cost.peak_mapped_bytes / MIB
    figures["resident MiB"] = cost.peak_resident_bytes / MIB
    figures["requests/file"] = requests / job.count
    if cost.passed:
        figures["wire bytes/byte"] = cost.passed[-1][1] / job.size
    summary = told(cost.out)
    for ours, name in [("latency_p50_ms", "p50 ms"), ("latency_p99_ms", "p99 ms")]:
        if summary.get(ours) is not None:
            figures[name] = summary[ours]
    return figures


def once(bench, client, job, tls, faults=(), extra=()):
    """One upload into a new sink; its figures by name, and the run itself."""
    with Sink(bench.binary, bench.place, tls, faults) as sink:
        before = sink.cpu_s()
        cost = client.run(job, sink, extra=extra)
        server = sink.cpu_s() - before
        counted = sink.so_far()
        held = sink.holds()
    if held != (job.count, job.size):
        raise RuntimeError(f"{client.name}: the sink holds {held} files and bytes, not {(job.count, job.size)}")
    if counted["tls"]:
        bench.ciphers[client.name] = " and ".join(counted["tls"])
    figures = figures_of(job, cost, "sink", server, counted["requests"])
    figures["body bytes/byte"] = counted["body bytes"] / job.size
    figures["refused"] = counted["refused"]
    return figures, cost


def told(out):
    """The summary that our own program ends its JSON lines with; empty for others."""
    last = out[out.rstrip().rfind("\n") + 1 :]
    if last.startswith('{"schema"'):
        event = json.loads(last)
        return event if event.get("type") == "summary" else {}
    return {}


def turns(bench, name, clients, job, tls, rounds, faults=()):
    """Rounds of uploads. Client's name -> figures."""
    return take_turns(bench, name, clients, rounds, lambda client: once(bench, client, job, tls, faults)[0])


def take_turns(bench, name, clients, rounds, turn):
    """Rounds in A B B A order after one that warms up: what drifts over time falls on all alike. `turn` is what a client does in
    its turn, and gives figures. Client's name -> figures."""
    results = {client.name: [] for client in clients}
    for number in range(-1, rounds):
        order = [client for client in clients if client.rounds is None or number < client.rounds]
        if number < 0:
            # Warmed up is the machine, by the first client; the slow ones need no more than their rounds.
            order = [client for client in order if client.rounds is None]
        for client in order if number % 2 else reversed(order):
            if number > 0 and bench.late():
                bench.say(f"{name}: the time is over after {number} of {rounds} rounds")
                return results
            try:
                figures = turn(client)
            except (RuntimeError, OSError) as error:
                if client.name.startswith("blobjet"):
                    raise
                bench.fail(f"{name}, {client.name}: {error}")
                clients = [other for other in clients if other is not client]
                del results[client.name]
                continue
            progress = ", ".join(f"{written(value)} {what}" for what, value in list(figures.items())[:3])
            bench.say(f"{name} round {number + 1} of {rounds}, {client.name}: {progress}")
            if number >= 0:
                results[client.name].append(figures)
    return {name: rows for name, rows in results.items() if rows}


def written(value):
    """A figure with as many digits as it deserves."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def median(rows, name):
    """The median of a figure; None where there is none."""
    values = [row[name] for row in rows if name in row]
    return statistics.median(values) if values else None


class Clock:
    """Says when the time is over."""

    def __init__(self, seconds):
        self.until = time.monotonic() + seconds if seconds else None

    def over(self):
        """Whether it is."""
        return self.until is not None and time.monotonic() > self.until


def say(text):
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)
