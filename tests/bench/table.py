"""Sections as Markdown: goals first, then ratios, then the figures themselves."""

import statistics

from rounds import written


def spread(values):
    """`min / median / max`; one value alone stands for itself."""
    if len(values) == 1:
        return written(values[0])
    return " / ".join(written(pick(values)) for pick in (min, statistics.median, max))


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
