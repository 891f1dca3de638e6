// Matrix products as a linear layer (autograd/linear.cc) and the output projection
// (autograd/cross_entropy.cc) call them.
#include "attend/kernels/gemm.h"
#include "bench/cases.h"
#include "bench/roofline.h"

namespace attend {
namespace {

struct Layer {
  int64_t tokens, in, out;
  bool projection;  ///< its output is float32
};

Work product_work(const Layer& layer, DType dtype) {
  return {.flops = 2.0 * static_cast<double>(layer.tokens * layer.in * layer.out),
          .arithmetic = dtype};
}

void forward(benchmark::State& state, const Layer& layer, DType dtype) {
  const Tensor x = filled({layer.tokens, layer.in}, dtype);
  const Tensor weight = filled({layer.out, layer.in}, dtype);
  const Tensor y({layer.tokens, layer.out}, layer.projection ? DType::kFloat32 : dtype);
  measure(state, product_work(layer, dtype).reads({x, weight}).writes({y}),
          [&] { gemm(x, Transpose::kNo, weight, Transpose::kYes, y); });
}

void d_input(benchmark::State& state, const Layer& layer, DType dtype) {
  const Tensor dy = filled({layer.tokens, layer.out}, dtype);
  const Tensor weight = filled({layer.out, layer.in}, dtype);
  const Tensor dx({layer.tokens, layer.in}, dtype);
  measure(state, product_work(layer, dtype).reads({dy, weight}).writes({dx}),
          [&] { gemm(dy, Transpose::kNo, weight, Transpose::kNo, dx); });
}

void d_weight(benchmark::State& state, const Layer& layer, DType dtype) {
  const Tensor dy = filled({layer.tokens, layer.out}, dtype);
  const Tensor x = filled({layer.tokens, layer.in}, dtype);
  const Tensor gradient = Tensor::zeros({layer.out, layer.in}, DType::kFloat32);
  measure(state, product_work(layer, dtype).reads({dy, x}).updates({gradient}),
          [&] { gemm(dy, Transpose::kYes, x, Transpose::kNo, gradient, {.accumulate = true}); });
}

void define(const Size& size, const Layer& layer, DType dtype) {
  const auto add = [&](const char* pass, const Layer& sized, auto* run) {
    const std::string dimensions = std::to_string(sized.tokens) + "x" + std::to_string(sized.in) +
                                   "x" + std::to_string(sized.out);
    benchmark::RegisterBenchmark(
        name_case(std::string("product_") + pass, size, dimensions, dtype).c_str(),
        [=](benchmark::State& state) { run(state, sized, dtype); });
  };
  add("forward", layer, forward);
  add("d_input", layer, d_input);
  Layer whole = layer;
  whole.tokens = kLaneTokens;
  add("d_weight", whole, d_weight);
}

}  // namespace

void define_products() {
  for (const Size& size : {kTiny, kBase, kBig}) {
    for (const DType dtype : dtypes()) {
      const int64_t d = size.d_model;
      define(size, {kLaneTokens, d, 3 * d, false}, dtype);
      define(size, {kLaneTokens, d, d, false}, dtype);
      define(size, {kLaneTokens, d, size.d_ff, false}, dtype);
      define(size, {kLaneTokens, size.d_ff, d, false}, dtype);
      define(size, {kTileRows, d, size.vocabulary, true}, dtype);
    }
  }
}

}  // namespace attend
