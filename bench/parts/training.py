"""Training steps on random tokens: attend beside PyTorch, and where attend's time goes."""

from parts.common import (in_words, median, precisions, run_json, run_peer, spread,
                          thread_counts)

PRESETS = ["tiny", "base", "big"]
WITH_PEER = ["tiny", "base"]
STEPS = {"tiny": 10, "base": 2, "big": 1}
WARMUP = {"tiny": 2, "base": 1, "big": 1}
LARGEST_ROWS = 10


def measure(args, preset, peers):
    """{(program, precision, threads): its repetitions' results}. Set-ups take turns, so that a
    change of the machine meets all of them."""
    results = {}
    steps = ["--steps", str(args.steps or STEPS[preset]), "--warmup", str(WARMUP[preset])]
    for _ in range(args.repetitions):
        for precision in precisions():
            for threads in thread_counts():
                common = ["--preset", preset, "--precision", precision] + steps
                ours = run_json([args.attend, "bench", "train", "--json", "--workers",
                                 str(threads)] + common)
                ours["steps"] = int(steps[1])
                results.setdefault(("attend", precision, threads), []).append(ours)
                if precision not in peers or preset not in WITH_PEER:
                    continue
                peer = run_peer("pytorch_train.py", common, threads)
                peer["utilisation"] = (ours["step_flops"] / peer["median_seconds"]
                                       / ours["machine_flops"])
                results.setdefault((peer["program"], precision, threads), []).append(peer)
    return results


def speed(repetitions):
    return median([each["target_tokens_per_second"] for each in repetitions])


def rows_of(preset, results):
    """Lines of the table. The ratio stands beside the set-ups with as many cores as the best of
    PyTorch's that uses the most."""
    most = max(threads for _, _, threads in results)
    rivals = [speed(repetitions) for (program, _, threads), repetitions in results.items()
              if program != "attend" and threads == most]
    rows = []
    for (program, precision, threads), repetitions in results.items():
        ratio = ""
        if rivals and program == "attend" and threads == most:
            ratio = f"{speed(repetitions) / max(rivals):.2f}"
        rows.append([
            preset, precision, str(threads), program,
            spread([each["target_tokens_per_second"] for each in repetitions], "{:.0f}"),
            spread([100 * each["utilisation"] for each in repetitions], "{:.0f}%"),
            f"{max(each['peak_resident_bytes'] for each in repetitions) / 1e6:.0f}", ratio])
    return rows


def profile_rows(result):
    """The ops that took most time, a step."""
    steps, threads = result["steps"], result["workers"]
    total = sum(op["seconds"] for op in result["profile"])
    rows = []
    for op in sorted(result["profile"], key=lambda op: -op["seconds"])[:LARGEST_ROWS]:
        seconds = max(op["seconds"], 1e-9)
        rate = op["flops"] / seconds
        rows.append([
            op["name"], f"{op['calls'] / steps:.0f}", f"{1e3 * seconds / steps:.2f}",
            f"{100 * seconds / total:.1f}%",
            f"{rate * 1e-9:.1f}" if op["flops"] else "",
            f"{100 * rate / (result['machine_flops'] / threads):.0f}%" if op["flops"] else "",
            f"{op['bytes'] / seconds * 1e-9:.1f}" if op["bytes"] else ""])
    return rows


def report(document, args, peers):
    document.write("## Training\n")
    document.write(
        f"Steps on random tokens, the median of {args.repetitions} repetitions (least–most), each "
        "a process of its own. Utilisation: the step's arithmetic, counted from attend's model, "
        "over its time and over oneDNN's rate at 1024 × 512 × 512 in that precision on as many "
        "cores, measured by attend in the same repetition. Ratio: over PyTorch's best set-up with "
        "as many cores. Tiny: 128 pairs of 16 + 16 tokens, 10 000 pieces; base and big: 32 pairs "
        "of 32 + 32, 32 000 pieces.\n")
    header = ["preset", "precision", "cores", "program", "target tokens/s", "utilisation",
              "peak memory, MB", "ratio"]
    rows, profiles = [], {}
    for preset in args.preset or PRESETS:
        results = measure(args, preset, peers)
        rows += rows_of(preset, results)
        best = results["attend", precisions()[-1], thread_counts()[-1]]
        profiles[preset] = sorted(
            best, key=lambda each: each["target_tokens_per_second"])[len(best) // 2]
    document.table(header, rows)
    for preset in [preset for preset in WITH_PEER if preset in profiles]:
        result = profiles[preset]
        document.write(f"### Where the time of {preset} goes\n")
        document.write(f"{result['precision']}, {in_words(result['workers'])}, the median "
                       "repetition; times are sums over the workers. One core of this machine: "
                       f"{result['machine_flops'] / result['workers'] * 1e-9:.0f} GFLOP/s.\n")
        document.table(["op", "calls a step", "ms a step", "share", "GFLOP/s", "of oneDNN's rate",
                        "GB/s"], profile_rows(result))
