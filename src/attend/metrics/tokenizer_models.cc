#include "attend/metrics/tokenizer_models.h"

#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <sentencepiece_processor.h>

#include "attend/base/error.h"
#include "attend/base/files.h"
#include "attend/base/log.h"
#include "attend/data/sentencepiece_file.h"
#include "attend/data/utf8.h"
#include "attend/metrics/unicode.h"

namespace attend {

namespace {

constexpr const char* kDictionaryFile = "sys.dic";
constexpr int64_t kMaxModelBytes = int64_t{1} << 28;

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    if (!text.empty()) text += ' ';
    text += piece;
  }
  return text;
}

/// The part of MeCab's interface for C that is of use here, as it has been since 0.99 (2011).
struct MecabDictionaryInfo {
  const char* filename;
  const char* charset;
  unsigned int size;
  int type;
  unsigned int lsize;
  unsigned int rsize;
  unsigned short version;
  MecabDictionaryInfo* next;
};

class MecabLibrary {
 public:
  MecabLibrary() : library_(dlopen("libmecab.so.2", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) {
      fail(
          "MeCab, which cuts Japanese and Korean into words, is not installed ({}): install "
          "Debian's libmecab2",
          dlerror());
    }
    load("mecab_new2", create);
    load("mecab_destroy", destroy);
    load("mecab_strerror", last_error);
    load("mecab_sparse_tostr2", parse);
    load("mecab_dictionary_info", dictionary_info);
    load("mecab_version", version);
  }

  void* (*create)(const char*) = nullptr;
  void (*destroy)(void*) = nullptr;
  const char* (*last_error)(void*) = nullptr;
  const char* (*parse)(void*, const char*, size_t) = nullptr;
  const MecabDictionaryInfo* (*dictionary_info)(void*) = nullptr;
  const char* (*version)() = nullptr;

 private:
  template <typename Function>
  void load(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) fail("libmecab.so.2 has no function {}: it is no MeCab", name);
  }

  void* library_;  // never closed: tokenizers may live as long as the process
};

const MecabLibrary& mecab() {
  static const MecabLibrary library;
  return library;
}

/// The first folder with a dictionary; empty where there is none.
std::string find_dictionary(const std::string& search_path) {
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::path(folder) / kDictionaryFile, error)) {
      return folder;
    }
  }
  return "";
}

using MecabTagger = std::shared_ptr<void>;

MecabTagger open_tagger(const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::path(folder) / kDictionaryFile, error)) {
    fail("tokenizer_model: {} holds no {}; expected the folder of a MeCab dictionary", folder,
         kDictionaryFile);
  }
  if (folder.find_first_of(" \t\"'") != std::string::npos) {
    // MeCab takes its arguments as one text that it cuts at spaces.
    fail("MeCab cannot open the folder \"{}\" because of the spaces or quotes in its name", folder);
  }
  // No settings of the user or the machine: they would change scores.
  const std::string arguments = "-r /dev/null -O wakati -d " + folder;
  MecabTagger tagger(mecab().create(arguments.c_str()), [](void* opened) {
    if (opened != nullptr) mecab().destroy(opened);
  });
  if (!tagger) {
    const std::string_view reason = mecab().last_error(nullptr);  // often empty
    fail("{} is no dictionary that MeCab can read{}{}", folder, reason.empty() ? "" : ": ", reason);
  }
  return tagger;
}

void check_dictionary(const MecabTagger& tagger, const MecabLanguage& language,
                      const std::string& folder) {
  const MecabDictionaryInfo* info = mecab().dictionary_info(tagger.get());
  if (info->next != nullptr) fail("{} has a user's dictionary, which would change scores", folder);
  if (info->size == language.entries) return;
  if (info->size != language.entries_of_debian) {
    fail(
        "{}: the dictionary in {} has {} words; {} has {}, and scores are comparable with it alone",
        language.name, folder, info->size, language.dictionary, language.entries);
  }
  static bool said = false;
  if (!std::exchange(said, true)) {
    logger().info(
        "{}: Debian's dictionary takes 令和, the era since 2019, for one word and sacreBLEU's for "
        "two; all other text is cut alike",
        language.name);
  }
}

}  // namespace

LineTokenizer load_sentencepiece_tokenizer(const std::string& path) {
  const std::string bytes = read_file(path, kMaxModelBytes);
  parse_sentencepiece_file(bytes, path);  // SentencePiece trusts what it is given
  auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  const auto status = processor->LoadFromSerializedProto(bytes);
  if (!status.ok()) fail("{}: {}", path, status.ToString());
  return [processor](std::string_view line) {
    std::vector<std::string> pieces;
    const std::string text = repair_utf8(line).text;
    const auto encoded = processor->Encode(text, &pieces);
    if (!encoded.ok()) fail("SentencePiece cannot cut a line: {}", encoded.ToString());
    return joined(pieces);
  };
}

LineTokenizer load_mecab_tokenizer(const MecabLanguage& language, const std::string& folder) {
  if (language.is_fork && mecab_version().find("ko") == std::string::npos) {
    fail(
        "{} needs mecab-ko, and libmecab.so.2 is MeCab {}, which would cut Korean otherwise: "
        "install mecab-ko, or cut the text with it and use the tokenizer none",
        language.name, mecab_version());
  }
  const std::string dictionary = folder.empty() ? find_dictionary(language.search_path) : folder;
  if (dictionary.empty()) {
    fail("{}: there is no dictionary {} in {}: install it, or name its folder", language.name,
         language.dictionary, language.search_path);
  }
  const MecabTagger tagger = open_tagger(dictionary);
  check_dictionary(tagger, language, dictionary);
  return [tagger](std::string_view line) {
    const std::string text = repair_utf8(strip(line)).text;
    const char* const parsed = mecab().parse(tagger.get(), text.data(), text.size());
    if (parsed == nullptr) fail("MeCab cannot cut a line: {}", mecab().last_error(tagger.get()));
    return std::string(strip(parsed));
  };
}

std::string mecab_version() { return mecab().version(); }

}  // namespace attend
