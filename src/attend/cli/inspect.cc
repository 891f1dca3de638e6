#include "attend/io/inspect.h"

#include "attend/base/error.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"

namespace attend {
namespace {

class InspectCommand : public Command {
 public:
  std::string_view name() const override { return "inspect"; }
  std::string_view summary() const override {
    return "Tell what a model or run folder, a weights file or a checkpoint holds";
  }
  void define(OptionSet& options) override {
    options.add("model", model_, "What to look at").positional().metavar("PATH");
  }
  void require() const override {
    if (model_.empty()) fail_usage("MODEL is missing: a model folder or a file in it");
  }
  void run(const OptionSet&) override { print(inspect(model_)); }

 private:
  std::string model_;
};

}  // namespace

std::unique_ptr<Command> make_inspect_command() { return std::make_unique<InspectCommand>(); }

}  // namespace attend
