"""The workloads, one function each: makes its files, has the clients take turns, and says what came of it.

A workload gives `Section`s: tables of figures, and `Goal`s, the figures that somebody promised or wants to see.
"""

import statistics
from dataclasses import dataclass, field

import downloads
import files
import floor
import network
from rounds import median, once, turns, written

KIB, MIB, GIB = files.KIB, files.MIB, files.GIB


@dataclass
class Goal:
    """A figure with what it should be: at most, or at least."""

    what: str
    value: float | None
    limit: float
    at_most: bool = True

    @property
    def met(self):
        """Whether it is so."""
        return self.value is not None and (self.value <= self.limit if self.at_most else self.value >= self.limit)


@dataclass
class Section:
    """What a workload found, plain or in TLS."""

    workload: str
    tls: bool
    what: str
    # Client (or variant) -> figures of each round.
    results: dict
    goals: list = field(default_factory=list)
    # Sentences to be read first.
    notes: list = field(default_factory=list)
    # All others are set in relation to the first.
    compare: bool = True


def _ratios(results, name, ours="blobjet", theirs="AzCopy, tuned"):
    """Ours to theirs by the medians of a figure; None where one is missing."""
    if ours not in results or theirs not in results:
        return None
    above, below = median(results[ours], name), median(results[theirs], name)
    return above / below if above is not None and below else None


def large(bench, tls):
    """L1: one large file, every client there is, and the least any client could do."""
    job = files.one(bench.place, int(bench.options.gib * GIB))
    what = f"one file of {bench.options.gib:g} GiB"
    everyone = [bench.ours, *bench.peers.values()]
    if not tls:
        everyone += floor.clients(bench)
    results = turns(bench, f"L1 {bench.scheme(tls)}", everyone, job, tls, bench.options.rounds)
    job.remove()
    rows = results["blobjet"]
    cpu, azcopy = median(rows, "client CPU s/GiB"), _ratios(results, "client CPU s/GiB")
    if tls:
        goals = [Goal("L1 TLS: client CPU, s/GiB", cpu, 0.48), Goal("L1 TLS: client CPU to AzCopy's (tuned)", azcopy, 1 / 2)]
    else:
        goals = [
            Goal("L1: client CPU, s/GiB", cpu, 0.22),
            Goal("L1: client CPU to AzCopy's (tuned)", azcopy, 1 / 3),
            Goal("L1: wall time to AzCopy's (tuned)", _ratios(results, "wall s"), 1 / 3),
            Goal("L1: rate to the warm floor's", _ratios(results, "Gbit/s", theirs="floor, warm"), 0.6, at_most=False),
            Goal("L1: anonymous memory, MiB", max(row["anonymous MiB"] for row in rows), 48),
            Goal("L1: resident memory, MiB", max(row["resident MiB"] for row in rows), 256),
        ]
    return [Section("L1", tls, what, results, goals)]


def several_large(bench, tls):
    """L2: ten large files."""
    each = int(bench.options.gib * GIB / 5)
    job = files.of_sizes(bench.place, [each] * 10)
    peers = bench.some("azcopy", "rclone")
    results = turns(bench, f"L2 {bench.scheme(tls)}", [bench.ours, *peers], job, tls, bench.options.rounds)
    job.remove()
    return [Section("L2", tls, f"10 files of {each / GIB:g} GiB", results)]


def medium(bench, tls):
    """M1: many files of one request each that have some weight."""
    count = max(10, bench.options.files // 2)
    job = files.of_sizes(bench.place, [256 * KIB] * count)
    peers = bench.some("azcopy", "rclone", "javascript", "obstore")
    results = turns(bench, f"M1 {bench.scheme(tls)}", [bench.ours, *peers], job, tls, bench.options.rounds)
    job.remove()
    return [Section("M1", tls, f"{count:,} files of 256 KiB", results)]


def small(bench, tls):
    """S1: many small files, every client there is."""
    count = bench.options.files
    job = files.of_sizes(bench.place, [4 * KIB] * count)
    results = turns(bench, f"S1 {bench.scheme(tls)}", [bench.ours, *bench.peers.values()], job, tls, bench.options.rounds)
    job.remove()
    cpu, word = median(results["blobjet"], "client CPU us/file"), "S1 TLS" if tls else "S1"
    goals = [
        Goal(f"{word}: client CPU, us a file", cpu, 26 if tls else 22),
        Goal(f"{word}: client CPU to AzCopy's (tuned)", _ratios(results, "client CPU us/file"), 1 / 6),
        Goal(f"{word}: requests a file", max(row["requests/file"] for row in results["blobjet"]), 1.0),
    ]
    if not tls:
        goals.insert(2, Goal("S1: files a second", median(results["blobjet"], "files/s"), 30_000, at_most=False))
    return [Section("S1", tls, f"{count:,} files of 4 KiB", results, goals)]


def _fit(points):
    """Least squares through (x, y): slope and R²."""
    xs, ys = zip(*points)
    slope, _ = statistics.linear_regression(xs, ys)
    return slope, statistics.correlation(xs, ys) ** 2 if len(points) > 2 else 1.0


def by_count(bench, tls):
    """S2: does time grow with the number of files, and memory not?"""
    results, points = {}, []
    for count in bench.options.counts:
        job = files.of_sizes(bench.place, [KIB] * count)
        # Each count for about as long, so that the largest does not take all the time there is.
        rounds = max(1, min(bench.options.rounds, 1_000_000 // count))
        label = f"{count:,} files"
        rows = turns(bench, f"S2 {label} {bench.scheme(tls)}", [bench.ours], job, tls, rounds)["blobjet"]
        job.remove()
        results[label] = rows
        points.append((count, median(rows, "wall s")))
    slope, r2 = _fit(points)
    peaks = {count: max(row["anonymous MiB"] for row in rows) for count, rows in zip(bench.options.counts, results.values())}
    big = [peak for count, peak in peaks.items() if count >= 10_000] or list(peaks.values())
    top = max(peaks)
    goals = [
        Goal("S2: R² of time over count", r2, 0.99, at_most=False),
        Goal(f"S2: anonymous memory at {top:,} files, MiB", peaks[top], 64),
        Goal("S2: anonymous memory, largest to smallest from 10,000 files on", max(big) / min(big), 1.25),
    ]
    notes = [f"time = {slope * 1e6:.1f} us a file, R² {r2:.5f}"]
    return [Section("S2", tls, "files of 1 KiB, more and more", results, goals, notes, compare=False)]


def _deciles(passed, wall):
    """Seconds for each tenth of the bytes on the wire."""
    total, marks = passed[-1][1], []
    for at, done in passed:
        while len(marks) < 10 and done >= total * (len(marks) + 1) / 10:
            marks.append(at)
    marks += [wall] * (10 - len(marks))
    return [end - start for start, end in zip([0, *marks], marks)]


def many_blocks(bench, tls):
    """B1: one blob of as many blocks as one can have; what does a block cost as they become more?"""
    most = bench.options.blocks
    results, tenths = {}, []
    for count in sorted({100, 1000, 10_000, most}):
        if count > most:
            continue
        job = files.one(bench.place, count * 16 * KIB)
        rows = []
        for number in range(bench.options.rounds + 1):
            extra = ["--block-size-mb", str(16 / 1024), "--put-blob-size-mb", str(16 / 1024)]
            figures, cost = once(bench, bench.ours, job, tls, extra=extra)
            row = {"wall s": cost.wall_s, "wall us/block": cost.wall_s / count * 1e6, "client CPU us/block": cost.cpu_s / count * 1e6}
            row["sink CPU us/block"] = figures["sink CPU s/GiB"] * job.size / GIB / count * 1e6
            row["requests/block"] = figures["requests/file"] / count
            row.update({name: figures[name] for name in ("anonymous MiB", "mapped MiB", "resident MiB")})
            bench.say(f"B1 {bench.scheme(tls)}, {count:,} blocks, round {number} of {bench.options.rounds}: {written(row['wall us/block'])} us a block")
            if number:
                rows.append(row)
                if count == most and cost.passed:
                    tenths.append(_deciles(cost.passed, cost.wall_s))
        job.remove()
        results[f"{count:,} blocks"] = rows
    notes, goals = [], []
    if most > 1000:
        grown = median(results[f"{most:,} blocks"], "client CPU us/block") / median(results["1,000 blocks"], "client CPU us/block")
        goals.append(Goal(f"B1: client CPU a block, at {most:,} blocks to at 1,000", grown, 1.15))
    if tenths:
        medians = [statistics.median(column) for column in zip(*tenths)]
        notes.append(f"ms for each tenth of the bytes of {most:,} blocks: " + " ".join(f"{seconds * 1e3:.0f}" for seconds in medians))
        # The first holds the start of the program, the last the commit.
        goals.append(Goal("B1: slowest tenth of the blocks to the fastest, but for the first and the last", max(medians[1:9]) / min(medians[1:9]), 1.5))
    return [Section("B1", tls, f"one blob of up to {most:,} blocks of 16 KiB", results, goals, notes, compare=False)]


def mixed(bench, tls):
    """X1: sizes as in the wild with one outlier, against the same bytes in equal files."""
    sizes = files.log_normal(bench.options.mixed, int(bench.options.outlier_gib * GIB))
    results, rounds = {}, bench.options.rounds
    for label, chosen in [("blobjet, mixed", sizes), ("blobjet, equal", files.equal(sizes))]:
        job = files.of_sizes(bench.place, chosen)
        others = bench.some("azcopy") if label.endswith("mixed") else []
        found = turns(bench, f"X1 {label} {bench.scheme(tls)}", [bench.ours, *others[:1]], job, tls, rounds)
        job.remove()
        results[label] = found.pop("blobjet")
        results.update(found)
    ratio = _ratios(results, "wall s", "blobjet, mixed", "blobjet, equal")
    what = f"{len(sizes):,} log-normal sizes and one of {bench.options.outlier_gib:g} GiB among them, {sum(sizes) / GIB:.2f} GiB"
    goal = Goal(f"X1{' TLS' if tls else ''}: wall time to that of the same bytes in equal files", ratio, 1.15)
    return [Section("X1", tls, what, results, [goal])]


def starts(bench, tls):
    """C1: many starts one after the other of the smallest copy."""
    job = files.one(bench.place, KIB)
    results = {}
    for client, number in [(bench.ours, bench.options.starts), *((peer, 2) for peer in bench.some("azcopy")[:1])]:
        rows = []
        for at in range(-3, number) if client is bench.ours else range(number):
            with bench.sink(tls) as sink:
                cost = client.run(job, sink, sample=False)
                if sink.holds() != (1, KIB):
                    raise RuntimeError("the KiB did not arrive")
            if at >= 0:
                rows.append({"wall ms": cost.wall_s * 1e3, "client CPU ms": cost.cpu_s * 1e3})
        results[client.name] = rows
        bench.say(f"C1 {bench.scheme(tls)}, {client.name}: {written(median(rows, 'wall ms'))} ms")
    job.remove()
    goal = Goal(f"C1{' TLS' if tls else ''}: from start to exit, ms", median(results["blobjet"], "wall ms"), 20)
    return [Section("C1", tls, f"{bench.options.starts} starts of a copy of 1 KiB", results, [goal])]


def large_download(bench, tls):
    """D1: one large blob into a file."""
    section = _large_download(bench, tls, "D1", downloads.FILES, cpu_limit=1.2)
    if not tls:
        section.goals.insert(1, Goal("D1: wall time to AzCopy's (tuned)", _ratios(section.results, "wall s"), 1 / 2))
    return [section]


def large_download_to_nowhere(bench, tls):
    """D2: the same, dropped as it comes: what receiving alone costs."""
    return [_large_download(bench, tls, "D2", downloads.NOWHERE, cpu_limit=0.35)]


def _large_download(bench, tls, word, where, cpu_limit):
    def make():
        return files.one(bench.place, int(bench.options.gib * GIB))

    results = downloads.turns(bench, f"{word} {bench.scheme(tls)}", make, tls, where)
    rows, goals = results["blobjet"], []
    if not tls:
        goals = [
            Goal(f"{word}: client CPU, s/GiB", median(rows, "client CPU s/GiB"), cpu_limit),
            Goal(f"{word}: anonymous memory, MiB", max(row["anonymous MiB"] for row in rows), 48),
            Goal(f"{word}: resident memory, MiB", max(row["resident MiB"] for row in rows), 256),
        ]
    return Section(word, tls, f"one blob of {bench.options.gib:g} GiB, {where.what}", results, goals)


def small_downloads(bench, tls):
    """D3: many small blobs into files."""
    count = max(10, bench.options.files // 2)

    def make():
        return files.of_sizes(bench.place, [4 * KIB] * count)

    results = downloads.turns(bench, f"D3 {bench.scheme(tls)}", make, tls, downloads.FILES)
    goals = [] if tls else [Goal("D3: client CPU, us a file", median(results["blobjet"], "client CPU us/file"), 60)]
    return [Section("D3", tls, f"{count:,} blobs of 4 KiB, {downloads.FILES.what}", results, goals)]


# What 1 % of refusals is for each kind of request that carries content.
REFUSALS = "op=PutBlock|PutBlob,share=1%,status=503/ServerBusy"


def refused(bench, tls):
    """F1: the same upload with and without 1 % of 503."""
    sections = []
    for word, make in [
        ("large", lambda: files.one(bench.place, int(bench.options.gib * GIB))),
        ("small", lambda: files.of_sizes(bench.place, [4 * KIB] * bench.options.files)),
    ]:
        job, results = make(), {"fault-free": [], "1 % refused": []}
        for number in range(-1, bench.options.rounds):
            variants = [("fault-free", ()), ("1 % refused", (REFUSALS,))]
            for label, faults in variants if number % 2 else reversed(variants):
                figures, _ = once(bench, bench.ours, job, tls, faults)
                bench.say(f"F1 {word} {bench.scheme(tls)} round {number + 1} of {bench.options.rounds}, {label}: {written(figures['wall s'])} s")
                if number >= 0:
                    results[label].append(figures)
        job.remove()
        goodput = _ratios(results, "wall s", "fault-free", "1 % refused")
        twice = (median(results["1 % refused"], "body bytes/byte") - median(results["fault-free"], "body bytes/byte")) * 100
        goals = [
            Goal(f"F1{' TLS' if tls else ''}, {word}: goodput to that without faults", goodput, 0.95, at_most=False),
            Goal(f"F1{' TLS' if tls else ''}, {word}: bytes sent twice, %", twice, 1.5),
        ]
        sections.append(Section("F1", tls, f"{word}: 1 % of the requests refused with 503", results, goals))
    return sections


def _settled(passed, rate):
    """Seconds until loopback first carried 90 % of `rate` (bytes/s) over a whole quarter of a second; None if never."""
    window, oldest = 0.25, 0
    for at, done in passed:
        while at - passed[oldest][0] > window:
            oldest += 1
        span = at - passed[oldest][0]
        if span > window * 0.8 and (done - passed[oldest][1]) / span >= 0.9 * rate:
            return passed[oldest][0]
    return None


def _best_rate(passed):
    """Bytes a second over the middle half of the bytes: what a setting reaches once it is under way."""
    total = passed[-1][1]
    inside = [(at, done) for at, done in passed if total / 4 <= done <= total * 3 / 4]
    if len(inside) < 2 or inside[-1][0] == inside[0][0]:
        return total / passed[-1][0]
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def slow_answers(bench, tls):
    """R1: answers that take their time, and a thin link: does it find the concurrency, and how soon?"""
    sections = []
    for word, make in [
        ("large", lambda: files.one(bench.place, int(bench.options.gib * GIB))),
        ("small", lambda: files.of_sizes(bench.place, [4 * KIB] * bench.options.files)),
    ]:
        job = make()
        for delay_ms in bench.options.delays:
            faults = (f"op=PutBlock|PutBlob,delay={delay_ms}ms",)
            results, rates, settled = {}, {}, []
            variants = [(f"{number} at a time", ["--concurrency", str(number)]) for number in bench.options.fixed]
            for label, extra in [*variants, ("blobjet", [])]:
                rows = []
                for _ in range(max(1, bench.options.rounds // 2)):
                    figures, cost = once(bench, bench.ours, job, tls, faults, extra)
                    rows.append(figures)
                    if cost.passed:
                        rates.setdefault(label, []).append(_best_rate(cost.passed))
                        if label == "blobjet":
                            best = max(statistics.median(found) for name, found in rates.items() if name != label)
                            settled.append(_settled(cost.passed, best))
                results[label] = rows
                bench.say(f"R1 {word} {delay_ms} ms {bench.scheme(tls)}, {label}: {written(median(rows, 'wall s'))} s")
            results = {"blobjet": results.pop("blobjet"), **results}
            goals = []
            if rates:
                best = max((statistics.median(found), name) for name, found in rates.items() if name != "blobjet")
                name = f"R1{' TLS' if tls else ''}, {word}, {delay_ms} ms"
                goals.append(Goal(f"{name}: rate under way to the best fixed setting's ({best[1]})", statistics.median(rates["blobjet"]) / best[0], 0.9, at_most=False))
                reached = [seconds for seconds in settled if seconds is not None]
                goals.append(Goal(f"{name}: seconds to 90 % of it", statistics.median(reached) if len(reached) > len(settled) / 2 else None, 3))
            sections.append(Section("R1", tls, f"{word}, answers after {delay_ms} ms", results, goals))
        with network.link_of(10**9) as slow:
            if slow:
                results = turns(bench, f"R1 {word} 1 Gbit/s {bench.scheme(tls)}", [bench.ours, *bench.some("azcopy")[:1]], job, tls, max(1, bench.options.rounds // 2))
                sections.append(Section("R1", tls, f"{word}, over a link of 1 Gbit/s", results))
            else:
                bench.fail("R1: a link of 1 Gbit/s needs tc and a network namespace")
        job.remove()
    return sections


# In the order they are run: where the time does not suffice for all, what is asked for most comes first.
WORKLOADS = {
    "L1": large,
    "S1": small,
    "C1": starts,
    "D1": large_download,
    "D2": large_download_to_nowhere,
    "D3": small_downloads,
    "F1": refused,
    "B1": many_blocks,
    "X1": mixed,
    "S2": by_count,
    "R1": slow_answers,
    "M1": medium,
    "L2": several_large,
}
# Measured in TLS too unless the command line says which; the others ask about memory and growth, which TLS does not change.
ALSO_IN_TLS = {"L1", "L2", "M1", "S1", "F1", "C1", "D1", "D2", "D3"}
