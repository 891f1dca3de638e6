#include "attend/train/run_state.h"

#include "attend/base/error.h"
#include "attend/base/version.h"

namespace attend {
namespace {

using nlohmann::json;

json amount_to_json(const TrainingAmount& amount) {
  return {{"epochs", amount.epochs},
          {"updates", amount.updates},
          {"tokens", amount.tokens},
          {"seconds", amount.seconds}};
}

TrainingAmount amount_from_json(const json& from) {
  return {from.at("epochs"), from.at("updates"), from.at("tokens"), from.at("seconds")};
}

void append(NamedTensors& to, std::string_view prefix, const ParameterSet& parameters,
            const Tensor& flat) {
  for (auto& [name, tensor] : parameters.views(flat)) {
    to.emplace_back(std::string(prefix) + name, tensor);
  }
}

void read_all(const SafetensorsFile& file, std::string_view prefix, const ParameterSet& parameters,
              const Tensor& flat) {
  for (const auto& [name, tensor] : parameters.views(flat)) {
    file.read_into(std::string(prefix) + name, tensor);
  }
}

}  // namespace

void RunState::note_scheduled(int64_t update, int64_t most) {
  if (scheduled.empty() || scheduled.back() != update) scheduled.push_back(update);
  if (std::ssize(scheduled) > most) scheduled.erase(scheduled.begin(), scheduled.end() - most);
}

json RunState::to_json() const {
  return {{"attend_version", kVersion},
          {"done", amount_to_json(done)},
          {"position", {position.epoch, position.window, position.batch}},
          {"pairs_in_epoch_done", pairs_in_epoch_done},
          {"source_tokens", source_tokens},
          {"skipped_updates", skipped_updates},
          {"bad_steps_in_row", bad_steps_in_row},
          {"last_validation", amount_to_json(last_validation)},
          {"last_checkpoint", amount_to_json(last_checkpoint)},
          {"best_criterion", best_criterion ? json(*best_criterion) : json()},
          {"best_loss", best_loss ? json(*best_loss) : json()},
          {"best_update", best_update},
          {"validations_without_improvement", validations_without_improvement},
          {"scheduled_checkpoints", scheduled},
          {"average_is_model", average_is_model},
          {"finished", finished},
          {"precision", precision},
          {"data_fingerprint", data_fingerprint},
          {"validation_fingerprint", validation_fingerprint},
          {"recipe", recipe}};
}

RunState RunState::from_json(const json& from, const std::string& file_name) {
  try {
    RunState state;
    state.done = amount_from_json(from.at("done"));
    const json& position = from.at("position");
    state.position = {position.at(0), position.at(1), position.at(2)};
    state.pairs_in_epoch_done = from.at("pairs_in_epoch_done");
    state.source_tokens = from.at("source_tokens");
    state.skipped_updates = from.at("skipped_updates");
    state.bad_steps_in_row = from.at("bad_steps_in_row");
    state.last_validation = amount_from_json(from.at("last_validation"));
    state.last_checkpoint = amount_from_json(from.at("last_checkpoint"));
    if (!from.at("best_criterion").is_null()) state.best_criterion = from.at("best_criterion");
    if (from.contains("best_loss") && !from["best_loss"].is_null()) {
      state.best_loss = from["best_loss"];
    }
    state.best_update = from.at("best_update");
    state.validations_without_improvement = from.at("validations_without_improvement");
    state.scheduled = from.value("scheduled_checkpoints", std::vector<int64_t>());
    state.average_is_model = from.value("average_is_model", false);
    state.finished = from.at("finished");
    state.precision = from.at("precision");
    state.data_fingerprint = from.at("data_fingerprint");
    state.validation_fingerprint = from.value("validation_fingerprint", "");
    state.recipe = from.value("recipe", "");
    return state;
  } catch (const json::exception& error) {
    fail(
        "{}: the state of the run in it cannot be read ({}); remove the file to go on from the "
        "checkpoint before it",
        file_name, error.what());
  }
}

void save_run(const Path& run, const RunState& state, const Transformer& model, Engine& engine,
              const std::map<std::string, std::string>& metadata) {
  const ParameterSet& parameters = model.parameters();
  const OptimizerState optimizer = engine.gather_state();
  NamedTensors tensors;
  append(tensors, kWeightsPrefix, parameters, parameters.flat_master());
  append(tensors, kAdamMeanPrefix, parameters, optimizer.first_moment);
  append(tensors, kAdamVariancePrefix, parameters, optimizer.second_moment);
  if (optimizer.average.defined()) {
    append(tensors, kAveragePrefix, parameters, optimizer.average);
  }
  save_checkpoint(run, state.done.updates, tensors, state.to_json(), metadata);
}

RunState restore_run(const Checkpoint& checkpoint, Transformer& model, Engine& engine) {
  ParameterSet& parameters = model.parameters();
  const SafetensorsFile& file = checkpoint.file;
  RunState state = RunState::from_json(checkpoint.state, file.path().string());
  read_all(file, kWeightsPrefix, parameters, parameters.flat_master());
  const OptimizerState optimizer = engine.blank_state();
  read_all(file, kAdamMeanPrefix, parameters, optimizer.first_moment);
  read_all(file, kAdamVariancePrefix, parameters, optimizer.second_moment);
  if (optimizer.average.defined()) {
    read_all(file, kAveragePrefix, parameters, optimizer.average);
  }
  engine.restore_state(optimizer);
  return state;
}

}  // namespace attend
