#!/usr/bin/python3
"""Tests of the report, without measuring anything: report_test.py KERNELS_BENCH"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import report  # noqa: E402
from parts import common, kernels, training  # noqa: E402

KERNELS_BENCH = ""
NAMES = ["product_forward", "product_d_input", "product_d_weight", "attention_forward",
         "attention_backward", "additive_attention_forward", "cached_attention", "memory_attention",
         "norm_forward", "norm_backward", "softmax_loss", "activation_forward",
         "activation_backward", "bias_gradient", "embedding_forward", "embedding_backward",
         "adam_ema"]


def result(rate, memory=1e6):
    return {"target_tokens_per_second": rate, "utilisation": 0.5, "peak_resident_bytes": memory}


class OptionsTest(unittest.TestCase):
    def refuse(self, *arguments):
        error = io.StringIO()
        with self.assertRaises(SystemExit) as left, contextlib.redirect_stderr(error):
            report.parse(arguments)
        self.assertEqual(left.exception.code, 2)
        return error.getvalue()

    def test_defaults_measure_everything(self):
        args = report.parse([])
        self.assertIsNone(args.part)
        self.assertEqual(args.repetitions, 5)
        self.assertTrue(args.output.endswith("build/bench.md"))

    def test_parts_add_up(self):
        args = report.parse("--part kernels --part epoch --repetitions 2 --steps 3".split())
        self.assertEqual((args.part, args.repetitions, args.steps), (["kernels", "epoch"], 2, 3))

    def test_wrong_calls_are_named(self):
        self.assertIn("speed", self.refuse("--part", "speed"))
        self.assertIn("found 0", self.refuse("--repetitions", "0"))
        self.assertIn("together", self.refuse("--train-source", "train.en"))


class PeersTest(unittest.TestCase):
    def test_a_slow_blas_leaves_float32_out(self):
        self.assertEqual(common.peer_precisions(None), [])
        self.assertEqual(common.peer_precisions(["1.13", "OpenBLAS"]), common.precisions())
        self.assertNotIn("float32", common.peer_precisions(["1.13", "reference BLAS"]))


class TablesTest(unittest.TestCase):
    def test_a_spread_is_median_least_and_most(self):
        self.assertEqual(common.spread([3, 1, 8], "{:.0f}"), "3 (1–8)")
        self.assertEqual(common.spread([3], "{:.0f}"), "3")

    def test_the_ratio_is_over_the_best_rival_with_most_cores(self):
        rows = training.rows_of("tiny", {
            ("attend", "float32", 1): [result(50)],
            ("attend", "float32", 2): [result(90), result(110), result(100)],
            ("PyTorch", "float32", 1): [result(80)],
            ("PyTorch", "float32", 2): [result(40)],
            ("PyTorch", "bfloat16", 2): [result(50)]})
        self.assertEqual([row[-1] for row in rows], ["", "2.00", "", "", ""])
        self.assertEqual(rows[1][4], "100 (90–110)")

    def test_the_profile_is_told_a_step_and_a_core(self):
        op = {"name": "gemm", "calls": 20, "seconds": 2.0, "flops": 4e9, "bytes": 0}
        rows = training.profile_rows({"steps": 10, "workers": 2, "machine_flops": 8e9,
                                      "profile": [op] + [dict(op, seconds=1.0)] * 11})
        self.assertEqual(len(rows), 10)
        self.assertEqual(rows[0], ["gemm", "2", "200.00", "15.4%", "2.0", "50%", ""])


class KernelsTest(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([KERNELS_BENCH, *arguments], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, encoding="utf-8").stdout

    def test_every_kernel_is_listed_at_both_sizes(self):
        listed = self.run_bench("--benchmark_list_tests").split()
        for name in NAMES:
            for preset in ("tiny", "base"):
                self.assertTrue([line for line in listed
                                 if re.fullmatch(f"{name}/{preset}/(.*/)?float32", line)],
                                f"{name} at {preset}")
        self.assertEqual(set(NAMES), {line.split("/")[0] for line in listed})
        self.assertEqual(len(listed), len(set(listed)))

    def test_a_kernel_reports_its_rates_and_its_share_of_the_roof(self):
        output = self.run_bench("--benchmark_filter=^norm_forward/tiny/float32$",
                                "--benchmark_min_time=0.001", "--benchmark_format=json")
        found, = json.loads(output)["benchmarks"]
        elements = 1024 * 128
        seconds = elements * 9 / found["FLOP/s"]
        floats = 4 * elements + 2 * 128 + 2 * 1024  # x, y, sum, out; gain, bias; statistics
        self.assertAlmostEqual(found["bytes/s"] * seconds / (4 * floats), 1, places=6)
        roof = min(found["limit FLOP/s"],
                   found["limit bytes/s"] * found["FLOP/s"] / found["bytes/s"])
        self.assertGreater(found["share"], 0)
        self.assertLess(abs(found["FLOP/s"] / roof / found["share"] - 1), 0.5)
        self.assertEqual(len(kernels.cells(found)), 4)


if __name__ == "__main__":
    KERNELS_BENCH = sys.argv.pop(1)
    unittest.main()
