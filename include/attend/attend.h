/// The library's public interface: what `make install` installs.
///
///     #include <attend/attend.h>
///
///     attend::TrainOptions options;
///     options.train_source = {"train.en"};
///     options.train_target = {"train.de"};
///     options.model = attend::preset("tiny");
///     options.stop_after = attend::parse_train_limit("10e");
///     options.run = "runs/first";
///     attend::train(options);
///
///     attend::Translator translator("runs/first", {});
///     std::string german = translator.translate_line("A dog runs.").text();
///
/// The names and meanings of all fields are those of the command's options. What fails throws
/// attend::Error (attend::UsageError where the call was wrong); messages say what to do.
#pragma once

#include "attend/base/error.h"         // IWYU pragma: export
#include "attend/base/log_level.h"     // IWYU pragma: export
#include "attend/base/version.h"       // IWYU pragma: export
#include "attend/data/text.h"          // IWYU pragma: export
#include "attend/metrics/bleu.h"       // IWYU pragma: export
#include "attend/metrics/chrf.h"       // IWYU pragma: export
#include "attend/metrics/ter.h"        // IWYU pragma: export
#include "attend/models/config.h"      // IWYU pragma: export
#include "attend/search/translator.h"  // IWYU pragma: export
#include "attend/train/trainer.h"      // IWYU pragma: export
