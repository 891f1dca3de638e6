// The rates of single kernels on one core, each beside its roof (roofline.h).
#include "attend/kernels/compute_thread.h"
#include "attend/kernels/gemm.h"
#include "bench/cases.h"

int main(int argc, char** argv) {
  attend::prepare_compute_thread();
  attend::define_products();
  attend::define_attention();
  attend::define_row_kernels();
  attend::define_weight_kernels();
  benchmark::AddCustomContext("matrix_library", attend::name_gemm_library());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
