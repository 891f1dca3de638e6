#pragma once

#include <string>

#include "attend/metrics/tokenizers.h"

namespace attend {

/// The tokenizers of BLEU that need a model.

/// The pieces of a SentencePiece model. Throws Error where the file is none.
LineTokenizer load_sentencepiece_tokenizer(const std::string& path);

/// What sacreBLEU insists on about MeCab, so that everybody's scores agree.
struct MecabLanguage {
  std::string name;        ///< of the tokenizer, for messages
  std::string dictionary;  ///< the name of the dictionary, for messages
  unsigned entries;        ///< that the dictionary has
  /// Debian's has 令和, the era since 2019, as one word more; no other text is cut differently.
  unsigned entries_of_debian;
  bool is_fork;             ///< cut by mecab-ko, which treats spaces in a way of its own
  std::string signature;    ///< behind MeCab's version
  std::string search_path;  ///< where dictionaries are looked for, with ':' between the folders
};

/// MeCab is loaded when it is first needed (libmecab.so.2), since scoring Japanese and Korean alone
/// needs it. Throws Error where it or the dictionary is not there or another than expected, and
/// says what to install.
LineTokenizer load_mecab_tokenizer(const MecabLanguage& language, const std::string& folder);

/// "0.996". Throws Error where MeCab is not installed.
std::string mecab_version();

}  // namespace attend
