"""What all parts of the report share: the machine, running programs, tables."""

import json
import os
import platform
import subprocess
import sys

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCH)
PEERS = os.path.join(BENCH, "peers")


class Document:
    """Markdown that goes to stdout and to a file at once, so that an interrupted run leaves what
    it has."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        self.file = open(path, "w", encoding="utf-8")

    def write(self, text=""):
        print(text, flush=True)
        print(text, file=self.file, flush=True)

    def table(self, header, rows):
        lines = [header, ["---"] * len(header)] + rows
        self.write("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")


def cores():
    return len(os.sched_getaffinity(0))


def in_words(count):
    return "1 core" if count == 1 else f"{count} cores"


def thread_counts():
    return [n for n in (1, 2) if n <= cores()]


def cpu():
    """The CPU's name, and whether it multiplies bfloat16."""
    name, has_bfloat16 = platform.machine(), False
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                has_bfloat16 = bool({"avx512_bf16", "amx_bf16", "bf16"} & set(value.split()))
    return name, has_bfloat16


def precisions():
    return ["float32"] + (["bfloat16"] if cpu()[1] else [])


def load_average():
    return " ".join(f"{load:.2f}" for load in os.getloadavg())


def run(command, threads=None):
    """The command's output. OMP_NUM_THREADS and its like are set to `threads`."""
    print("+ " + " ".join(command), file=sys.stderr, flush=True)
    environment = dict(os.environ)
    if threads is not None:
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            environment[name] = str(threads)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8",
                          env=environment).stdout


def run_json(command, threads=None):
    output = run(command, threads)
    return json.loads(output[output.index("{"):])


def run_peer(script, arguments, threads):
    """A program of bench/peers, which all take --threads."""
    command = [sys.executable, "-B", os.path.join(PEERS, script), "--threads", str(threads)]
    return run_json(command + arguments, threads)


def find_torch():
    """PyTorch's version and BLAS; None without PyTorch."""
    code = ("import json, torch, pytorch_model as model; "
            "print(json.dumps([torch.__version__, model.name_blas()]))")
    found = subprocess.run([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, encoding="utf-8", check=False,
                           env=dict(os.environ, PYTHONPATH=PEERS))
    return json.loads(found.stdout) if found.returncode == 0 else None


def peer_precisions(torch):
    """In which precisions PyTorch is measured. With the reference BLAS, a float32 step of base
    takes minutes and says nothing about PyTorch."""
    if torch is None:
        return []
    slow = torch[1].startswith("reference")
    return [precision for precision in precisions() if not (slow and precision == "float32")]


def spread(values, form):
    """"median (least–most)" of several values, each written by `form`; one value by itself."""
    values = sorted(values)
    middle = form.format(median(values))
    if len(values) == 1:
        return middle
    return f"{middle} ({form.format(values[0])}–{form.format(values[-1])})"


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2
