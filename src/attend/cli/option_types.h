#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attend/base/error.h"
#include "attend/metrics/bleu.h"
#include "attend/models/config.h"
#include "attend/search/options.h"
#include "attend/train/options.h"

namespace attend {

/// How each type of option is read from text and written as it. `read_value` throws UsageError
/// saying what was found and what was expected; the caller adds the option and where it was given.
/// `read_value(text_of(value))` gives the same value.
void read_value(const std::string& text, bool& value);
void read_value(const std::string& text, int64_t& value);  ///< 4096, 4K, 1.5M
void read_value(const std::string& text, uint64_t& value);
void read_value(const std::string& text, float& value);  ///< finite
void read_value(const std::string& text, double& value);
void read_value(const std::string& text, std::string& value);
void read_value(const std::string& text, TrainLimit& value);
void read_value(const std::string& text, MemoryLimit& value);
void read_value(const std::string& text, std::optional<double>& value);  ///< or "auto"

std::string text_of(bool value);
std::string text_of(int64_t value);
std::string text_of(uint64_t value);
std::string text_of(float value);
std::string text_of(double value);
std::string text_of(const std::string& value);
std::string text_of(const TrainLimit& value);
std::string text_of(const MemoryLimit& value);
std::string text_of(const std::optional<double>& value);

/// What help texts call the type: "N", "NUMBER", "TEXT", "AMOUNT", "SIZE", or "" for a flag without
/// value.
std::string type_name(const bool&);
std::string type_name(const int64_t&);
std::string type_name(const uint64_t&);
std::string type_name(const float&);
std::string type_name(const double&);
std::string type_name(const std::string&);
std::string type_name(const TrainLimit&);
std::string type_name(const MemoryLimit&);
std::string type_name(const std::optional<double>&);

/// The values that a name can be chosen for. An enumeration with a specialisation is an option's
/// type.
template <typename Enum>
struct Choices;

template <>
struct Choices<Positions> {
  static constexpr Positions kAll[] = {Positions::kSinusoidal, Positions::kLearned,
                                       Positions::kRotary};
};
template <>
struct Choices<NormPlacement> {
  static constexpr NormPlacement kAll[] = {NormPlacement::kPost, NormPlacement::kPre};
};
template <>
struct Choices<Activation> {
  static constexpr Activation kAll[] = {Activation::kRelu, Activation::kGelu, Activation::kSilu};
};
template <>
struct Choices<TiedEmbeddings> {
  static constexpr TiedEmbeddings kAll[] = {TiedEmbeddings::kAll, TiedEmbeddings::kDecoder,
                                            TiedEmbeddings::kNone};
};
template <>
struct Choices<AttentionScore> {
  static constexpr AttentionScore kAll[] = {AttentionScore::kScaledDotProduct,
                                            AttentionScore::kAdditive};
};
template <>
struct Choices<Precision> {
  static constexpr Precision kAll[] = {Precision::kAuto, Precision::kFloat32, Precision::kBFloat16};
};
template <>
struct Choices<InferencePrecision> {
  static constexpr InferencePrecision kAll[] = {
      InferencePrecision::kAuto, InferencePrecision::kFloat32, InferencePrecision::kBFloat16,
      InferencePrecision::kInt8};
};
template <>
struct Choices<LengthPenalty> {
  static constexpr LengthPenalty kAll[] = {LengthPenalty::kGnmt, LengthPenalty::kAverage,
                                           LengthPenalty::kNone};
};
template <>
struct Choices<Stopping> {
  static constexpr Stopping kAll[] = {Stopping::kLikely, Stopping::kCertain, Stopping::kFirst};
};
template <>
struct Choices<OptimizerKind> {
  static constexpr OptimizerKind kAll[] = {OptimizerKind::kAdam, OptimizerKind::kAdamW};
};
template <>
struct Choices<Schedule> {
  static constexpr Schedule kAll[] = {Schedule::kPaper, Schedule::kInverseSqrt, Schedule::kLinear,
                                      Schedule::kConstant};
};
template <>
struct Choices<ValidationMetric> {
  static constexpr ValidationMetric kAll[] = {ValidationMetric::kLoss,
                                              ValidationMetric::kPerplexity,
                                              ValidationMetric::kBleu, ValidationMetric::kChrf};
};
template <>
struct Choices<SubwordModel> {
  static constexpr SubwordModel kAll[] = {SubwordModel::kBpe, SubwordModel::kUnigram};
};
template <>
struct Choices<BleuTokenizer> {
  static constexpr BleuTokenizer kAll[] = {
      BleuTokenizer::k13a,      BleuTokenizer::kIntl,      BleuTokenizer::kChar,
      BleuTokenizer::kZh,       BleuTokenizer::kJaMecab,   BleuTokenizer::kKoMecab,
      BleuTokenizer::kSpm,      BleuTokenizer::kFlores101, BleuTokenizer::kFlores200,
      BleuTokenizer::kSpBleu1k, BleuTokenizer::kNone};
};
template <>
struct Choices<BleuSmoothing> {
  static constexpr BleuSmoothing kAll[] = {BleuSmoothing::kExp, BleuSmoothing::kFloor,
                                           BleuSmoothing::kAddK, BleuSmoothing::kNone};
};

template <typename Enum>
concept Choice = requires {
  Choices<Enum>::kAll;
};

template <Choice Enum>
std::string choices_of(std::string_view separator) {
  std::string names;
  for (const Enum each : Choices<Enum>::kAll) {
    if (!names.empty()) names += separator;
    names += name_of(each);
  }
  return names;
}

template <Choice Enum>
void read_value(const std::string& text, Enum& value) {
  for (const Enum each : Choices<Enum>::kAll) {
    if (name_of(each) == text) {
      value = each;
      return;
    }
  }
  fail_usage("found \"{}\", expected one of {}", text, choices_of<Enum>(", "));
}

template <Choice Enum>
std::string text_of(Enum value) {
  return std::string(name_of(value));
}

template <Choice Enum>
std::string type_name(const Enum&) {
  return choices_of<Enum>("|");
}

}  // namespace attend
