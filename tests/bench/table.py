"""Sections as Markdown: the few lines that matter, goals, then ratios, then the figures themselves."""

import statistics

from rounds import median, written


def spread(values):
    """`min / median / max`; one value alone stands for itself."""
    if len(values) == 1:
        return written(values[0])
    return " / ".join(written(pick(values)) for pick in (min, statistics.median, max))


def in_short(sections):
    """The lines that the README shows: medians, beside AzCopy's."""
    shown = [
        ("L1", False, "wall time", "wall s", "{} s"),
        ("L1", False, "client CPU, CRC64 of every block included", "client CPU s/GiB", "{} s/GiB"),
        ("L1", False, "anonymous memory", "anonymous MiB", "{} MiB"),
        ("L1", False, "resident memory", "resident MiB", "{} MiB"),
        ("L1", True, "client CPU", "client CPU s/GiB", "{} s/GiB"),
        ("S1", False, "files a second", "files/s", "{}"),
        ("S1", False, "client CPU", "client CPU us/file", "{} µs a file"),
        ("S1", True, "client CPU", "client CPU us/file", "{} µs a file"),
        ("C1", False, "start to end", "wall ms", "{} ms"),
        ("D1", False, "wall time", "wall s", "{} s"),
        ("D1", False, "client CPU", "client CPU s/GiB", "{} s/GiB"),
        ("D2", False, "client CPU", "client CPU s/GiB", "{} s/GiB"),
        ("D3", False, "client CPU", "client CPU us/file", "{} µs a file"),
    ]
    found = {(section.workload, section.tls): section for section in sections}
    lines = []
    for workload, tls, what, name, form in shown:
        if (workload, tls) not in found:
            continue
        section = found[workload, tls]
        values = [median(section.results.get(client, []), name) for client in ("blobjet", "AzCopy, tuned")]
        cells = ["" if value is None else form.format(written(value)) for value in values]
        lines.append(f"| {section.what}{', TLS' if tls else ''}: {what} | {cells[0]} | {cells[1]} |")
    return "\n".join(["| | blobjet | AzCopy, tuned |", "|---|---|---|", *lines]) + "\n" if lines else ""


def goals(sections):
    """The figures that are to be reached, in one table."""
    found = [goal for section in sections for goal in section.goals]
    if not found:
        return ""
    lines = ["| | reached | wanted | |", "|---|---|---|---|"]
    for goal in found:
        value = "not measured" if goal.value is None else written(goal.value)
        lines.append(f"| {goal.what} | {value} | {'<=' if goal.at_most else '>='} {written(goal.limit)} | {'yes' if goal.met else 'no'} |")
    return "\n".join(lines) + "\n"


def _ratio_table(results):
    first, *others = results
    ours = results[first]
    cpu = next((name for name in ours[0] if name.startswith("client CPU")), None)
    wall = next(name for name in ours[0] if name.startswith("wall"))
    lines = [f"| times {first}'s | client CPU | wall | rounds |", "|---|---|---|---|"]
    for other in others:
        cells = []
        for name in (cpu, wall):
            # Round by round where both ran in it, which is what the turns are for.
            ratios = [theirs[name] / mine[name] for mine, theirs in zip(ours, results[other]) if name in mine and name in theirs]
            cells.append(spread(ratios) if ratios else "")
        lines.append(f"| {other} | {cells[0]} | {cells[1]} | {len(results[other])} |")
    return "\n".join(lines) + "\n"


def section(found):
    """One section."""
    title = f"### {found.workload}{' in TLS' if found.tls else ''}: {found.what}\n"
    parts = [title, *(f"{note}\n" for note in found.notes)]
    if found.compare and len(found.results) > 1:
        parts.append(_ratio_table(found.results))
    names = list(dict.fromkeys(name for rows in found.results.values() for row in rows for name in row))
    # Nothing was refused, nothing sent twice: not worth a line.
    dull = {"refused": 0, "body bytes/byte": 1}
    figures = []
    for name in names:
        columns = [[row[name] for row in rows if name in row] for rows in found.results.values()]
        if name in dull and all(abs(value - dull[name]) < 0.002 for column in columns for value in column):
            continue
        figures.append(f"| {name} | " + " | ".join(spread(column) if column else "" for column in columns) + " |")
    head = ["| min / median / max | " + " | ".join(found.results) + " |", "|---|" + "---|" * len(found.results)]
    parts.append("\n".join(head + figures) + "\n")
    return "\n".join(parts)
