// Translates files, one thread each, with one copy of the model, or stdin where there are none:
//
//     translate MODEL [FILE...]
//
// FILE.out gets the translations of FILE.
#include <attend/attend.h>

#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

/// Line by line: stdin may be a terminal, and each line is answered before the next is there.
void translate_stdin(const attend::Translator& translator) {
  attend::LineReader reader("-");
  translator.translate_stream(reader, [](const attend::Translation& translation) {
    std::cout << translation.text() << std::endl;
  });
}

void translate_file(const attend::Translator& translator, const std::string& path) {
  attend::LineReader reader(path);
  std::ofstream output(path + ".out");
  translator.translate_stream(reader, [&](const attend::Translation& translation) {
    output << translation.text() << '\n';
    if (!output) attend::fail("{}.out: cannot write", path);  // ends this stream
  });
}

/// All at once. Workers are shared, so that a short file does not wait for a long one.
void translate_files(const attend::Translator& translator, const std::vector<std::string>& paths) {
  std::vector<std::exception_ptr> errors(paths.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    callers.emplace_back([&, i] {
      try {
        translate_file(translator, paths[i]);
      } catch (...) {
        errors[i] = std::current_exception();  // of this file; the others go on
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: translate MODEL [FILE...]\n";
    return 2;
  }
  try {
    attend::TranslatorOptions options;
    options.search.beam_size = 4;
    options.workers = 2;
    const attend::Translator translator(argv[1], options);
    const std::vector<std::string> paths(argv + 2, argv + argc);
    if (paths.empty()) {
      translate_stdin(translator);
    } else {
      translate_files(translator, paths);
    }
  } catch (const attend::UsageError& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
