"""Single kernels on one core, each beside its roof."""

import json
import os
import tempfile

from parts.common import precisions, run

SECONDS_A_KERNEL = "0.05"


def measure(args):
    """{(kernel, preset, variant): {precision: median of the repetitions}} in the order of the
    list."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernels.json")
        run([args.kernels_bench, f"--benchmark_out={path}", "--benchmark_out_format=json",
             f"--benchmark_min_time={SECONDS_A_KERNEL}",
             f"--benchmark_repetitions={args.repetitions}",
             "--benchmark_report_aggregates_only=true"]
            + ([f"--benchmark_filter={args.kernels}"] if args.kernels else []), threads=1)
        with open(path, encoding="utf-8") as file:
            found = json.load(file)["benchmarks"]
    results = {}
    for each in found:
        if each["run_type"] == "aggregate" and each["aggregate_name"] != "median":
            continue
        kernel, preset, *variant, precision = each["run_name"].split("/")
        results.setdefault((kernel, preset, " ".join(variant)), {})[precision] = each
    return results


def cells(measured):
    """Time, rates, share of the roof and what sets it."""
    if measured is None:
        return [""] * 4
    micro = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}[measured["time_unit"]]
    by_arithmetic = measured["FLOP/s"] / measured["limit FLOP/s"]
    by_bytes = measured["bytes/s"] / measured["limit bytes/s"]
    roof = "arithmetic" if by_arithmetic > by_bytes else "bytes"
    return [f"{measured['cpu_time'] * micro:.1f}", f"{measured['FLOP/s'] * 1e-9:.1f}",
            f"{measured['bytes/s'] * 1e-9:.1f}", f"{100 * measured['share']:.0f}% {roof}"]


def limits(results):
    """The range of the limits that the kernels were held against, in words."""
    everything = [each for case in results.values() for each in case.values()]
    words = []
    for precision in precisions():
        rates = [case[precision]["limit FLOP/s"] for key, case in results.items()
                 if precision in case and (precision == "float32" or key[0].startswith("product"))]
        if rates:
            words.append(f"{precision} {min(rates) * 1e-9:.0f}–{max(rates) * 1e-9:.0f} GFLOP/s")
    rates = [each["limit bytes/s"] for each in everything]
    if rates:
        words.append(f"memory {min(rates) * 1e-9:.0f} to cache {max(rates) * 1e-9:.0f} GB/s")
    return ", ".join(words)


def report(document, args):
    document.write("## Kernels\n")
    results = measure(args)
    document.write(
        f"One core, the median of {args.repetitions} repetitions. FLOP and bytes are what a call "
        "must at least do. The roof is min(arithmetic limit, bandwidth limit × FLOP a byte), both "
        "measured in the same process at most two seconds before: oneDNN's rate at 1024 × 512 × "
        "512 (in the products' own precision; in float32 for all other kernels, which compute in "
        "float32), and a sweep that reads and writes a working set of the same size. The last "
        "column says which of the two sets the roof. Products are tokens × in × out. Limits here: "
        f"{limits(results)}.\n")
    header, columns = ["kernel", "preset", "case"], precisions()
    for precision in columns:
        header += [f"{precision}: µs", "GFLOP/s", "GB/s", "of the roof"]
    rows = []
    for key, case in results.items():
        row = list(key)
        for precision in columns:
            row += cells(case.get(precision))
        rows.append(row)
    document.table(header, rows)
