"""table.py - the figures as Markdown. A cell is the median of the rounds; in parentheses, the least and the most.

A ratio is lbproxy's figure to that of the better peer, which is the one with the lower median, in the same round: the
median of those. Rounds share what the machine does to all, so it is steadier than a ratio of medians."""

from statistics import median

PEERS = ("nginx", "haproxy")


def cell(values, form):
    spread = f" ({form.format(min(values))}-{form.format(max(values))})" if len(values) > 1 else ""
    return form.format(median(values)) + spread


def ratio(row, key, names):
    """lbproxy's to the better peer's, round by round."""
    peers = [row["results"][name][key] for name in PEERS if name in names]
    if "lbproxy" not in names or not peers:
        return "-"
    better = min(peers, key=median)
    return cell([ours / theirs for ours, theirs in zip(row["results"]["lbproxy"][key], better)], "{:.2f}")


def lines_of(title, names, rows, columns):
    """One table; `columns` is [(head, function of row)] after clients and body."""
    heads = ["clients", "body", *(head for head, _ in columns)]
    lines = [f"**{title}**", "", "| " + " | ".join(heads) + " |", "|" + " ---: |" * len(heads)]
    for row in rows:
        cells = [str(row["clients"]), f"{row['body']} B", *(make(row) for _, make in columns)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + [""]


def each(names, make):
    """A column a proxy: make(its results)."""
    return [(name, lambda row, name=name: make(row["results"][name])) for name in names]


def list_where(names, rows, tells):
    """Where tells(row, result) says something, as one text; empty where it says nothing."""
    found = [(row, name, tells(row, row["results"][name])) for row in rows for name in names]
    return "; ".join(f"{name}, {row['clients']} clients, {row['body']} B: {text}" for row, name, text in found if text)


def notes(names, rows):
    """What a reader must know before trusting a row."""
    limits = list_where(names, rows, lambda row, result: median(result["share"]) < 0.9 and
                        f"{median(result['share']):.0%}")
    short = list_where(names, rows, lambda row, result: median(result["fixed_rps"]) < 0.97 * row["rate"] and
                       f"{median(result['fixed_rps']):.0f} of {row['rate']:.0f}")
    others = [row["results"][name]["others"] for row in rows for name in names]
    disturbed = sum(each > 0.05 for each in others)
    lines = []
    if limits:
        lines.append(f"- The proxy did not fill its core, the load or others were the limit: {limits}.")
    if short:
        lines.append(f"- The fixed rate was not reached: {short}.")
    if disturbed:
        lines.append(f"- Not a quiet machine: in {disturbed} of {len(others)} cells others took more than 5 % of a "
                     f"core in some round, up to {max(others):.0%}.")
    return lines


def latency(result):
    return cell(result["p50"], "{:.0f}") + " / " + cell(result["p99"], "{:.0f}")


def markdown(names, rows):
    cpu = [("lbproxy / better", lambda row: ratio(row, "us", names))]
    tail = [("lbproxy / better, 99th", lambda row: ratio(row, "p99", names))]
    lines = lines_of("Processor time a request, µs, at full load", names, rows,
                     each(names, lambda result: cell(result["us"], "{:.1f}")) + cpu)
    lines += lines_of("Of it in the system, %", names, rows,
                      each(names, lambda result: cell([100 * x for x in result["system"]], "{:.0f}")))
    lines += lines_of("Requests a second at full load", names, rows,
                      each(names, lambda result: cell(result["rps"], "{:.0f}")))
    lines += lines_of("Latency at 60 % of the slowest's peak, µs: median / 99th percentile", names, rows,
                      [("a second", lambda row: f"{row['rate']:.0f}")] + each(names, latency) + tail)
    lines += lines_of("Memory after the load, MiB: proportional / most resident", names, rows,
                      each(names, lambda result: f"{result['pss'] / 2**20:.1f} / {result['peak'] / 2**20:.1f}"))
    return "\n".join(lines + notes(names, rows)).rstrip() + "\n"
