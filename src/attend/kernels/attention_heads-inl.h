// Attention over all heads and sequences of a batch, for any score. Included once for each
// instruction set.
#if defined(ATTEND_KERNELS_ATTENTION_HEADS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTEND_KERNELS_ATTENTION_HEADS_INL_H_
#undef ATTEND_KERNELS_ATTENTION_HEADS_INL_H_
#else
#define ATTEND_KERNELS_ATTENTION_HEADS_INL_H_
#endif

#include <hwy/cache_control.h>

#include "attend/kernels/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace attend {
namespace HWY_NAMESPACE {

/// The product of a query block's weights, transposed [keys, queries], and rows [keys, width].
inline void WeighRows(const QueryBlock& block, const float* weights, const float* rows,
                      int64_t width, int64_t row_stride, float* out) {
  SmallGemm<false>(block.queries, width, LeftMatrix<true>{weights, block.stride}, rows, row_stride,
                   out, row_stride,
                   [&](int64_t first, int64_t count) { return block.query_range(first, count); });
}

/// out [keys, width] += weights [keys, queries] times rows [queries, width].
inline void AddWeighedRows(const QueryBlock& block, const float* weights, const float* rows,
                           int64_t width, int64_t row_stride, float* out) {
  SmallGemm<true>(block.keys, width, LeftMatrix<false>{weights, block.stride}, rows, row_stride,
                  out, row_stride, [&](int64_t first, int64_t) { return block.key_range(first); });
}

/// scores [keys, queries] = keys [keys, width] times transposed queries [width, queries].
inline void MultiplyKeys(const QueryBlock& block, const float* keys, int64_t key_stride,
                         const float* queries, int64_t width, float* scores) {
  SmallGemm<false>(block.keys, block.queries, LeftMatrix<false>{keys, key_stride}, queries,
                   block.stride, scores, block.stride,
                   [&](int64_t first, int64_t) { return block.score_range(first, width); });
}

/// Scratch of one head of one sequence. Widths are padded to whole vectors.
struct HeadScratch {
  int64_t key_stride, value_stride;
  int64_t query_block;   ///< queries taken at once; a multiple of the vector length
  float *keys, *values;  ///< [keys, width]
  float* queries;        ///< transposed [key_width, query_block]
  float* scores;         ///< [keys, query_block], then the weights
  float* factors;        ///< [keys, query_block], of dropout
  float* sums;           ///< [query_block], inverse sums of the weights
  float* out;            ///< [query_block, width]
  // for the backward pass
  float *query_rows, *d_out_rows;  ///< [query_block, width]
  float* d_out;                    ///< transposed [value_width, query_block]
  float* d_scores;                 ///< [keys, query_block]
  float *d_keys, *d_values;        ///< [keys, width]
};

/// Sizes for the longest sequences of the batch. A block of scores takes about 256 KiB at most.
inline HeadScratch MakeScratch(const AttentionShape& shape, bool backward) {
  int64_t queries = 1, keys = 1;
  for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
    queries = std::max(queries, shape.query_offsets[s + 1] - shape.query_offsets[s]);
    keys = std::max(keys, shape.key_offsets[s + 1] - shape.key_offsets[s]);
  }
  constexpr int64_t kScores = 65536, kLeast = 16;
  HeadScratch scratch{};
  scratch.key_stride = RoundUp(shape.key_width, FloatLanes());
  scratch.value_stride = RoundUp(shape.value_width, FloatLanes());
  const int64_t fitting = std::max(kScores / keys / kLeast * kLeast, kLeast);
  scratch.query_block = std::min(RoundUp(queries, kLeast), fitting);
  const int64_t block = scratch.query_block;
  const int64_t widest = std::max(scratch.key_stride, scratch.value_stride);

  float* next = nullptr;
  int64_t total = 0;
  const auto take = [&](int64_t count) {
    float* taken = next == nullptr ? nullptr : next + total;
    total += RoundUp(count, 16);
    return taken;
  };
  const auto carve = [&] {
    total = 0;
    scratch.keys = take(keys * scratch.key_stride);
    scratch.values = take(keys * scratch.value_stride);
    scratch.queries = take(shape.key_width * block);
    scratch.scores = take(keys * block);
    if (shape.dropout.active()) scratch.factors = take(keys * block);
    scratch.sums = take(block);
    scratch.out = take(block * widest);
    if (!backward) return;
    scratch.query_rows = take(block * scratch.key_stride);
    scratch.d_out_rows = take(block * scratch.value_stride);
    scratch.d_out = take(shape.value_width * block);
    scratch.d_scores = take(keys * block);
    scratch.d_keys = take(keys * scratch.key_stride);
    scratch.d_values = take(keys * scratch.value_stride);
  };
  carve();  // to learn the total
  next = attention_scratch(total);
  carve();
  return scratch;
}

/// Calls visit(sequence, head).
template <class Visit>
inline void ForHeads(const AttentionShape& shape, const Visit& visit) {
  for (std::size_t s = 0; s + 1 < shape.query_offsets.size(); ++s) {
    for (int64_t head = 0; head < shape.heads; ++head) visit(s, head);
  }
}

/// Asks for a head's share of the next sequence's rows. A head's rows are short and far apart, so
/// the processor does not foresee them; asked for while a sequence before is worked on, they are in
/// the cache in time. Long sequences have the arithmetic to wait for theirs.
inline void PrefetchNext(const AttentionShape& shape, std::span<const int64_t> offsets,
                         std::size_t sequence, int64_t head, const Tensor& tensor) {
  if (sequence + 2 >= offsets.size()) return;
  constexpr int64_t kMostBytes = 1 << 17, kLine = 64;
  const int64_t begin = offsets[sequence + 1], rows = offsets[sequence + 2] - begin;
  const int64_t size = size_of(tensor.dtype()), bytes = tensor.columns() * size;
  if (rows * bytes > kMostBytes) return;
  for (int64_t row = rows * head / shape.heads; row < rows * (head + 1) / shape.heads; ++row) {
    const std::byte* from = tensor.raw() + (begin + row) * tensor.row_stride() * size;
    for (int64_t at = 0; at < bytes; at += kLine) hwy::Prefetch(from + at);
  }
}

/// Calls visit(block) for the blocks of one sequence's queries.
template <class Visit>
inline void ForQueryBlocks(const AttentionShape& shape, std::size_t sequence, int64_t query_block,
                           const Visit& visit) {
  const int64_t queries = shape.query_offsets[sequence + 1] - shape.query_offsets[sequence];
  const int64_t keys = shape.key_offsets[sequence + 1] - shape.key_offsets[sequence];
  for (int64_t first = 0; first < queries; first += query_block) {
    const int64_t count = std::min(query_block, queries - first);
    const int64_t seen = shape.causal ? std::min(keys, first + count) : keys;
    visit(QueryBlock{first, count, seen, RoundUp(count, FloatLanes()), shape.causal});
  }
}

/// Score: query_scale(), Scores(head, block, scratch), and for the backward pass gradient_scale()
/// and Gradients(head, block, scratch), which writes d_q to scratch.out and adds to scratch.d_keys.
/// Both gradients are multiplied by gradient_scale() as they are written.
template <typename T, class Score>
void ForwardHeads(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Score& score, const Tensor& out) {
  const HeadScratch scratch = MakeScratch(shape, false);
  ForHeads(shape, [&](std::size_t s, int64_t head) HWY_ATTR {
    const int64_t first_query = shape.query_offsets[s], first_key = shape.key_offsets[s];
    const int64_t keys = shape.key_offsets[s + 1] - first_key;
    const HeadRows<T> query_rows(q, first_query, head * shape.key_width);
    const HeadRows<T> out_rows(out, first_query, head * shape.value_width);
    PackRows(HeadRows<T>(k, first_key, head * shape.key_width), keys, shape.key_width, scratch.keys,
             scratch.key_stride);
    PackRows(HeadRows<T>(v, first_key, head * shape.value_width), keys, shape.value_width,
             scratch.values, scratch.value_stride);
    ForQueryBlocks(shape, s, scratch.query_block, [&](const QueryBlock& block) HWY_ATTR {
      TransposeRows(query_rows.from(block.first_query), block.queries, shape.key_width,
                    score.query_scale(), scratch.queries, block.stride);
      PrefetchNext(shape, shape.key_offsets, s, head, k);
      score.Scores(head, block, scratch);
      PrefetchNext(shape, shape.key_offsets, s, head, v);
      Softmax(block, scratch.scores, scratch.sums);
      PrefetchNext(shape, shape.query_offsets, s, head, q);
      if (shape.dropout.active()) {
        DropoutFactors(shape.dropout, block, first_query + block.first_query, head, shape.heads,
                       scratch.factors);
        ApplyFactors(block, scratch.factors, scratch.scores);
      }
      PrefetchNext(shape, shape.query_offsets, s, head, out);
      WeighRows(block, scratch.scores, scratch.values, shape.value_width, scratch.value_stride,
                scratch.out);
      WriteRows(scratch.out, scratch.value_stride, block.queries, shape.value_width, 1.0F,
                scratch.sums, out_rows.from(block.first_query));
    });
  });
}

/// The attention weights [heads, queries, keys] of each sequence, one after the other.
template <typename T, class Score>
void WeighHeads(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Score& score,
                float* out) {
  const HeadScratch scratch = MakeScratch(shape, false);
  ForHeads(shape, [&](std::size_t s, int64_t head) HWY_ATTR {
    const int64_t first_key = shape.key_offsets[s];
    const int64_t keys = shape.key_offsets[s + 1] - first_key;
    const HeadRows<T> queries(q, shape.query_offsets[s], head * shape.key_width);
    PackRows(HeadRows<T>(k, first_key, head * shape.key_width), keys, shape.key_width, scratch.keys,
             scratch.key_stride);
    ForQueryBlocks(shape, s, scratch.query_block, [&](const QueryBlock& block) HWY_ATTR {
      TransposeRows(queries.from(block.first_query), block.queries, shape.key_width,
                    score.query_scale(), scratch.queries, block.stride);
      score.Scores(head, block, scratch);
      Softmax(block, scratch.scores, scratch.sums);
      for (int64_t i = 0; i < block.queries; ++i) {
        const int64_t seen = block.seen(i);
        for (int64_t j = 0; j < seen; ++j) {
          *out++ = scratch.scores[j * block.stride + i] * scratch.sums[i];
        }
        out = std::fill_n(out, keys - seen, 0.0F);
      }
    });
  });
}

template <typename T, class Score>
void BackwardHeads(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
                   const Score& score, const Tensor& d_out, const Tensor& d_q, const Tensor& d_k,
                   const Tensor& d_v) {
  const HeadScratch scratch = MakeScratch(shape, true);
  const int64_t key_width = shape.key_width, value_width = shape.value_width;
  ForHeads(shape, [&](std::size_t s, int64_t head) HWY_ATTR {
    const int64_t first_query = shape.query_offsets[s], first_key = shape.key_offsets[s];
    const int64_t keys = shape.key_offsets[s + 1] - first_key;
    const HeadRows<T> query_rows(q, first_query, head * key_width);
    const HeadRows<T> d_query_rows(d_q, first_query, head * key_width);
    const HeadRows<T> d_out_rows(d_out, first_query, head * value_width);
    PackRows(HeadRows<T>(k, first_key, head * key_width), keys, key_width, scratch.keys,
             scratch.key_stride);
    PackRows(HeadRows<T>(v, first_key, head * value_width), keys, value_width, scratch.values,
             scratch.value_stride);
    std::fill_n(scratch.d_keys, keys * scratch.key_stride, 0.0F);
    std::fill_n(scratch.d_values, keys * scratch.value_stride, 0.0F);
    ForQueryBlocks(shape, s, scratch.query_block, [&](const QueryBlock& block) HWY_ATTR {
      const HeadRows<T> queries = query_rows.from(block.first_query);
      const HeadRows<T> d_outs = d_out_rows.from(block.first_query);
      TransposeRows(queries, block.queries, key_width, score.query_scale(), scratch.queries,
                    block.stride);
      TransposeRows(d_outs, block.queries, value_width, 1.0F, scratch.d_out, block.stride);
      PackRows(queries, block.queries, key_width, scratch.query_rows, scratch.key_stride);
      PackRows(d_outs, block.queries, value_width, scratch.d_out_rows, scratch.value_stride);
      PrefetchNext(shape, shape.key_offsets, s, head, k);
      score.Scores(head, block, scratch);
      PrefetchNext(shape, shape.key_offsets, s, head, v);
      Softmax(block, scratch.scores, scratch.sums);
      MultiplyKeys(block, scratch.values, scratch.value_stride, scratch.d_out, value_width,
                   scratch.d_scores);
      if (shape.dropout.active()) {
        DropoutFactors(shape.dropout, block, first_query + block.first_query, head, shape.heads,
                       scratch.factors);
      }
      SoftmaxGradient(block, scratch.sums, scratch.factors, scratch.scores, scratch.d_scores);
      PrefetchNext(shape, shape.query_offsets, s, head, q);
      AddWeighedRows(block, scratch.scores, scratch.d_out_rows, value_width, scratch.value_stride,
                     scratch.d_values);
      PrefetchNext(shape, shape.query_offsets, s, head, d_out);
      score.Gradients(head, block, scratch);
      WriteRows(scratch.out, scratch.key_stride, block.queries, key_width, score.gradient_scale(),
                nullptr, d_query_rows.from(block.first_query));
    });
    WriteRows(scratch.d_keys, scratch.key_stride, keys, key_width, score.gradient_scale(), nullptr,
              HeadRows<T>(d_k, first_key, head * key_width));
    WriteRows(scratch.d_values, scratch.value_stride, keys, value_width, 1.0F, nullptr,
              HeadRows<T>(d_v, first_key, head * value_width));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attend
HWY_AFTER_NAMESPACE();

#endif  // include toggle
