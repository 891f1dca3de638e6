// Trains a small model on two parallel files, then translates the lines of stdin with it:
//
//     train_and_translate SOURCE TARGET RUN LIMIT < input > output
//
// LIMIT is as in `attend train --stop-after`: 10e, 500u, 5m. Running it again goes on with the run.
#include <attend/attend.h>

#include <iostream>
#include <string>

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: train_and_translate SOURCE TARGET RUN LIMIT\n";
    return 2;
  }
  try {
    attend::TrainOptions options;
    options.train_source = {argv[1]};
    options.train_target = {argv[2]};
    options.run = argv[3];
    options.stop_after = attend::parse_train_limit(argv[4]);
    options.model = attend::preset("tiny");
    options.vocabulary_size = 1000;
    options.learning_rate = 5e-3;
    options.warmup = 100;

    attend::TrainHooks hooks;
    hooks.on_log = [](const attend::TrainProgress& progress) {
      std::cerr << attend::to_string(progress) << '\n';
    };
    attend::train(options, hooks);

    const attend::Translator translator(options.run, {});
    std::string line;
    while (std::getline(std::cin, line)) {
      std::cout << translator.translate_line(line).text() << '\n';
    }
  } catch (const attend::UsageError& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
