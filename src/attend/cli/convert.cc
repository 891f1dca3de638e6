#include "attend/base/error.h"
#include "attend/base/log.h"
#include "attend/cli/command.h"
#include "attend/cli/output.h"
#include "attend/io/model_directory.h"
#include "attend/search/load_model.h"

namespace attend {
namespace {

class ConvertCommand : public Command {
 public:
  std::string_view name() const override { return "convert"; }
  std::string_view summary() const override {
    return "Write a model with its matrices in another precision, int8 in a quarter of the size";
  }
  std::string_view details() const override {
    return "Translating with the result gives what --precision of the same name gives with the "
           "original\nmodel, for int8 to the last bit; it loads faster. int8 keeps a scale for "
           "every "
           "row of a matrix.\n\n"
           "Example\n  attend convert --model runs/m30k --precision int8 --output m30k.int8";
  }
  void define(OptionSet& options) override {
    options.add("model", model_, "A model folder, or the folder of a run")
        .positional()
        .metavar("DIR");
    options.add("precision", precision_, "What to write; auto is int8");
    options.add("output", output_, "The model folder to write").metavar("DIR");
  }
  void require() const override {
    if (model_.empty()) {
      fail_usage("--model DIR is missing: a model folder, or the folder of a run");
    }
    if (output_.empty()) fail_usage("--output DIR is missing: the model folder to write");
    if (!files_of_model(output_).empty()) {
      fail_usage("output: {} holds a model or a run already; choose another --output", output_);
    }
  }
  void run(const OptionSet&) override;

 private:
  DType dtype() const {
    if (precision_ == InferencePrecision::kFloat32) return DType::kFloat32;
    return precision_ == InferencePrecision::kBFloat16 ? DType::kBFloat16 : DType::kInt8;
  }

  std::string model_;
  InferencePrecision precision_ = InferencePrecision::kInt8;
  std::string output_;
};

void ConvertCommand::run(const OptionSet&) {
  const ModelFiles files = load_model_directory(model_);
  if (stored_dtype(files.weights) == DType::kInt8 && dtype() != DType::kInt8) {
    logger().warn("{} is int8 already; what rounding it lost does not come back", model_);
  }
  save_new_model_directory(output_, files, convert_weights(files, dtype()));
  const Path written = Path(output_) / kWeightsFile;
  logger().info("{}: {} bytes, {} before", written.string(), std::filesystem::file_size(written),
                files.weights.file_bytes());
}

}  // namespace

std::unique_ptr<Command> make_convert_command() { return std::make_unique<ConvertCommand>(); }

}  // namespace attend
