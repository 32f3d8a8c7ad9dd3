"""One form for all benchmark results: a table for people, bench_results/NAME.json for scripts."""
import json
import os
import statistics

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def processor_times():
    """Ticks since the start of the machine: (all, those that the host gave to others)."""
    with open("/proc/stat") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    return sum(ticks), ticks[7]


BEGAN = processor_times()


def stolen():
    """The share of this run's processor time that the host gave to others, in percent."""
    ticks, steal = (now - then for now, then in zip(processor_times(), BEGAN))
    return round(100 * steal / max(ticks, 1), 1)


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown")
    with open("/proc/meminfo") as f:
        memory = round(int(f.readline().split()[1]) / 1048576)
    return {"processor": model, "cpus": os.cpu_count(), "memory_gib": memory,
            "kernel": os.uname().release, "load": round(os.getloadavg()[0], 2), "stolen_percent": stolen()}


def row(case, unit, samples, budget=None, better="lower"):
    """A row from {"muster": [..], "limit": [..], peer: [..]}; figures are medians."""
    middle = {k: statistics.median(v) for k, v in samples.items() if v}
    out = {"case": case, "unit": unit, "better": better, "muster": middle.get("muster"),
           "peers": {k: v for k, v in middle.items() if k not in ("muster", "limit")},
           "limit": middle.get("limit"), "budget": budget,
           "runs": max(len(v) for v in samples.values()),
           "spread": {k: [min(v), max(v)] for k, v in samples.items() if v}}
    return out


def figure(value, otherwise="-"):
    return otherwise if value is None else "%.4f" % value


def show(name, rows):
    """Prints the table and keeps the results.

    A row's "notes", if it has them, say why a peer has no figure.
    """
    peers = sorted({p for r in rows for p in [*r["peers"], *r.get("notes", {})]})
    head = ["case", "unit", "muster", "limit", "muster/limit", "budget"] + \
        [x for p in peers for x in (p, p + "/muster")]
    lines = [head]
    for r in rows:
        line = [r["case"], r["unit"], figure(r["muster"]), figure(r["limit"]),
                "%.2f" % (r["muster"] / r["limit"]) if r["limit"] else "-", figure(r["budget"])]
        for p in peers:
            value = r["peers"].get(p)
            ratio = "%.1f" % (value / r["muster"]) if value and r["muster"] else "-"
            line += [figure(value, r.get("notes", {}).get(p, "-")), ratio]
        lines.append(line)
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    facts = machine()
    print("# %s: %s, %d cpus, load %.2f, %.1f %% of their time stolen by the host; medians of %d runs" %
          (name, facts["processor"], facts["cpus"], facts["load"], facts["stolen_percent"], rows[0]["runs"]))
    for line in lines:
        print("  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip())
    folder = os.path.join(ROOT, "bench_results")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as f:
        json.dump({"machine": facts, "rows": rows}, f, indent=1)
    print("# kept in bench_results/%s.json" % name)
