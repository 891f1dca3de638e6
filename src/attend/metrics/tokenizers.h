#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

/// How BLEU cuts a line into words: sacreBLEU's tokenizers under sacreBLEU's names.
enum class BleuTokenizer {
  k13a,        ///< mteval-v13a, the default of WMT: for languages written with spaces
  kIntl,       ///< mteval-v14's international tokenization: by Unicode's punctuation and symbols
  kChar,       ///< every character is a word
  kZh,         ///< for Chinese: each Chinese character is a word, the rest as in mteval-v13a
  kJaMecab,    ///< for Japanese: MeCab's words with the dictionary IPADIC
  kKoMecab,    ///< for Korean: mecab-ko's words with mecab-ko-dic
  kSpm,        ///< the same as flores101
  kFlores101,  ///< the pieces of FLORES-101's SentencePiece model (Goyal et al. 2022, "spBLEU")
  kFlores200,  ///< the same of FLORES-200
  kSpBleu1k,   ///< the same of spBLEU-1K
  kNone,       ///< the words are there already, with white space between them
};

std::string_view name_of(BleuTokenizer tokenizer);  ///< "13a", "ja-mecab", "spBLEU-1K", ...
/// Throws UsageError listing the names that there are.
BleuTokenizer parse_bleu_tokenizer(std::string_view name);

/// Cuts a line into words: the line with single spaces between them (kNone: the line as it is). Not
/// for several threads at once.
using LineTokenizer = std::function<std::string(std::string_view line)>;

/// Gets a tokenizer ready. `model` is the file or folder that the tokenizer needs, if any: the
/// SentencePiece model, or a folder with MeCab's dictionary ("": Debian's IPADIC). Throws
/// UsageError where a model is missing or there is nothing that it could be for, and Error where it
/// or MeCab cannot be used.
LineTokenizer load_bleu_tokenizer(BleuTokenizer tokenizer, const std::string& model = "");

/// The tokenizer in a signature, as sacreBLEU writes it: "13a", "ja-mecab-0.996-IPA", "flores101".
std::string signature_of(BleuTokenizer tokenizer);

struct TerOptions;
/// Tercom's tokenization: lower-casing, normalisation and removal of punctuation as `options` say,
/// then single spaces between the words.
std::string tokenize_tercom(const TerOptions& options, std::string_view line);

/// The pieces of `line` between white space, as Python's str.split() cuts it. They point into
/// `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace attend
