"""A real epoch of Multi30k: sentences of all lengths, which PyTorch must pad."""

import json
import os
import tempfile

from parts.common import ROOT, in_words, precisions, run, run_peer, thread_counts

VOCABULARY = 8000
BATCH_TOKENS = 4096


def find_data(args):
    """(source, target), or None where they are not given and not in the usual place."""
    if args.train_source and args.train_target:
        return args.train_source, args.train_target
    shared = os.environ.get("ATTEND_SHARED", os.path.join(ROOT, "..", "shared"))
    folder = os.path.normpath(os.path.join(shared, "data", "multi30k"))
    for suffix in ("", ".gz"):
        pair = tuple(os.path.join(folder, f"train.{side}{suffix}") for side in ("en", "de"))
        if all(os.path.exists(path) for path in pair):
            return pair
    return None


def prepare(args, data, folder):
    """Trains the tokenizer. Returns it and the two files of numbers for the peer."""
    tokenizer = os.path.join(folder, "tokenizer.model")
    run([args.attend, "tokenizer", "train", "--quiet", "--vocabulary-size", str(VOCABULARY),
         "--output", tokenizer, *data])
    files = []
    for path in data:
        files.append(os.path.join(folder, f"{len(files)}.ids"))
        run([args.attend, "tokenizer", "encode", "--ids", "--tokenizer", tokenizer, "--input",
             path, "--output", files[-1]])
    return tokenizer, files


def train(args, data, tokenizer, precision, threads, folder):
    """The log's last line about the training, which holds the sums of the whole epoch."""
    folder = os.path.join(folder, precision)
    run([args.attend, "train", "--quiet", "--run", folder, "--train-source", data[0],
         "--train-target", data[1], "--tokenizer", tokenizer, "--preset", "tiny",
         "--batch-tokens", str(BATCH_TOKENS), "--precision", precision, "--workers", str(threads),
         "--stop-after", "1e", "--validate-every", "none", "--checkpoint-every", "none",
         "--max-length-ratio", "0", "--log-every", "1"])
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as lines:
        return [each for each in map(json.loads, lines) if each["event"] == "train"][-1]


def check_counts(document, ours, peers):
    """Both must have met the same text."""
    counts = {each["target_tokens"] for each in ours}
    theirs = {each["epoch_target_tokens"] for each in peers}
    if not theirs:
        return
    if counts == theirs:
        document.write(f"Both count {counts.pop()} target tokens in the epoch, ends of sentences "
                       "included.\n")
    else:
        document.write(f"**The counts of target tokens differ**: attend {sorted(counts)}, PyTorch "
                       f"{sorted(theirs)}. The ratio compares different work.\n")


def report(document, args, peers):
    document.write("## A real epoch\n")
    data = find_data(args)
    if data is None:
        document.write("Left out: it needs Multi30k's English and German training text, as "
                       "`--train-source train.en --train-target train.de` or in "
                       "`../shared/data/multi30k/`.\n")
        return
    threads = thread_counts()[-1]
    ours, theirs = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, files = prepare(args, data, folder)
        for precision in precisions():
            ours[precision] = train(args, data, tokenizer, precision, threads, folder)
            if precision in peers:
                theirs[precision] = run_peer(
                    "pytorch_epoch.py",
                    files + ["--vocabulary", str(VOCABULARY), "--precision", precision,
                             "--batch-tokens", str(BATCH_TOKENS), "--seconds",
                             str(args.peer_seconds)], threads)
    document.write(
        f"{os.path.basename(data[0])} and {os.path.basename(data[1])}, the preset tiny with "
        f"{VOCABULARY} pieces, label smoothing 0.1, Adam, {BATCH_TOKENS} tokens a batch, "
        f"{in_words(threads)}, one run each. attend trains the whole epoch (`attend train "
        "--stop-after 1e`), and its seconds are its log's, from the first batch on, waits for data "
        "included. PyTorch sorts by length, pads, and takes a part of the epoch: batches in random "
        f"order for {args.peer_seconds:.0f} s or until there are no more, after three that are "
        "not counted. Tokens are real ones, without padding.\n")
    best = max((each["target_tokens_per_second"] for each in theirs.values()), default=None)
    rows = []
    for precision, each in ours.items():
        rate = each["target_tokens"] / each["seconds"]
        rows.append(["attend", precision, str(each["update"]), str(each["target_tokens"]),
                     f"{each['seconds']:.1f}", "none", f"{rate:.0f}",
                     f"{rate / best:.2f}" if best else ""])
    for precision, each in theirs.items():
        rows.append([each["program"], precision, f"{each['batches']} of {each['epoch_batches']}",
                     str(each["target_tokens"]), f"{each['seconds']:.1f}",
                     f"{100 * each['padding']:.1f}%", f"{each['target_tokens_per_second']:.0f}",
                     ""])
    document.table(["program", "precision", "batches", "target tokens", "seconds",
                    "padding, both sides", "target tokens/s", "ratio to PyTorch's best"], rows)
    check_counts(document, ours.values(), theirs.values())
