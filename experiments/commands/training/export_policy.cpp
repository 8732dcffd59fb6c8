#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

#include "experiments/commands/commands.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/running/run_flags.hpp"
#include "experiments/commands/running/trained_policy.hpp"
#include "experiments/commands/tools/recording_info.hpp"
#include "experiments/exporting/header_file.hpp"
#include "experiments/exporting/onnx_file.hpp"
#include "experiments/exporting/samples.hpp"
#include "experiments/exporting/tensor_files.hpp"
#include "experiments/run_folder/run_folder.hpp"
#include "learner/acting/collector.hpp"
#include "learner/policy_graph/weight_type.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::int64_t kSampleBytes = 64 << 20; // default limit for recorded observations

struct ExportFlags {
  StoredRunChoice run;
  std::string out;
  std::string format = "all";
  std::string weights = "float";
  std::string name = "policy";
  std::string contract;
  CheckpointChoice checkpoint;
  std::int64_t samples = 0; // 0: 1000, or fewer for large pictures
  int episodes = 0;
  bool json = false;
};

/// The exported policy and everything that belongs to it.
struct Exported {
  actors::RunConfig config;
  PolicyContract contract;
  learner::PolicyGraph graph;
  PolicySamples samples;
  std::map<std::string, double> returns = {}; // by data type of the weights
};

std::int64_t sample_count(const ExportFlags& options, const PolicyContract& contract) {
  if (options.samples > 0)
    return options.samples;
  std::size_t bytes = 0;
  for (const ContractArray& array : contract.observations)
    bytes += array.spec.bytes() * static_cast<std::size_t>(contract.history);
  return std::clamp<std::int64_t>(kSampleBytes / static_cast<std::int64_t>(bytes), 16, 1000);
}

Exported load_exported(const std::filesystem::path& run, const ExportFlags& options) {
  TrainedPolicy trained = load_trained_policy(run, choose_checkpoint(run, options.checkpoint));
  Exported made{.config = std::move(trained.config),
                .contract = std::move(trained.contract),
                .graph = {},
                .samples = {}};
  auto graph = trained.policy->graph();
  if (!graph)
    throw std::invalid_argument(
        "agent '" + made.contract.agent
        + "' does not describe its policy, so it cannot be exported. An agent of a plug-in "
          "overrides learner::Policy::graph(); an agent in Python exports its module with "
          "torch.onnx.export, from the checkpoint's learner.safetensors");
  made.graph = *std::move(graph);
  if (!options.contract.empty())
    check_contract(made.contract, options.contract);
  made.samples = record_samples(made.config.environment, made.contract, *trained.policy, made.graph,
                                learner::weight_type_named(options.weights),
                                learner::split_seed(made.config.seed, {6}),
                                sample_count(options, made.contract));
  for (const auto type :
       {learner::WeightType::float32, learner::WeightType::bfloat16, learner::WeightType::int8})
    if (options.episodes > 0)
      made.returns[learner::weight_type_name(type)] =
          graph_return(made.config.environment, with_weights(made.graph, type),
                       learner::split_seed(made.config.seed, {5}), options.episodes);
  return made;
}

void write_exported(const std::filesystem::path& folder, const ExportFlags& options,
                    const Exported& exported) {
  const auto wants = [&](const char* format) {
    return options.format == "all" || options.format == format;
  };
  write_text(folder / "contract.json", contract_text(exported.contract));
  write_samples(folder / "samples.safetensors", exported.samples, exported.graph.picture,
                exported.contract);
  if (wants("onnx"))
    write_onnx(folder / "policy.onnx", exported.graph, exported.contract);
  if (wants("safetensors"))
    write_parameters(folder / "policy.safetensors", exported.graph, exported.contract);
  if (wants("header"))
    write_header(folder, options.name, exported.graph, exported.contract,
                 learner::weight_type_named(options.weights));
}

void export_policy(ExportFlags options) {
  const std::filesystem::path run = chosen_run(options.run);
  if (options.out.empty())
    options.out = (run / "export").string();
  options.out = new_folder(options.out).string();
  const Exported exported = load_exported(run, options);
  const std::filesystem::path unfinished = options.out + ".unfinished";
  std::filesystem::remove_all(unfinished);
  std::filesystem::create_directories(unfinished);
  try {
    write_exported(unfinished, options, exported);
    std::filesystem::rename(unfinished, options.out); // all or nothing
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(unfinished, ignored);
    throw;
  }
  if (options.json) {
    print_json({{"folder", options.out},
                {"task", exported.contract.task},
                {"agent", exported.contract.agent},
                {"updates", exported.contract.updates},
                {"samples", exported.samples.count},
                {"largest_difference", exported.samples.largest_difference},
                {"mean_returns", exported.returns}});
    return;
  }
  std::printf("%s on %s after %lld updates -> %s\n", exported.contract.agent.c_str(),
              exported.contract.task.c_str(), static_cast<long long>(exported.contract.updates),
              options.out.c_str());
  std::printf("largest difference from the policy %.2g on %lld observations\n",
              exported.samples.largest_difference, static_cast<long long>(exported.samples.count));
  for (const auto& [type, mean] : exported.returns)
    std::printf("return %.1f with %s weights (mean of %d episodes)\n", mean, type.c_str(),
                options.episodes);
}

} // namespace

void add_export_policy(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "export", "Writes a run's policy for other programs: ONNX, a C++17 header, safetensors");
  command->footer(
      "Example: troupe export runs/quickstart/2026-11-21T10-00-00 --out policy --evaluate 10\n"
      "Each folder has the contract (names, order, scales and history of observations and actions) "
      "and recorded observations with the expected actions.");
  auto options = std::make_shared<ExportFlags>();
  add_stored_run(*command, options->run, "the run's folder");
  command->add_option("--out", options->out, "a new folder; default: export in the run's folder");
  command
      ->add_option("--format", options->format,
                   "what is written in addition to contract and samples")
      ->check(CLI::IsMember({"onnx", "header", "safetensors", "all"}))
      ->capture_default_str();
  command->add_option("--weights", options->weights, "type of the header's weights")
      ->check(CLI::IsMember({"float", "bfloat16", "int8"}))
      ->capture_default_str();
  command->add_option("--namespace", options->name, "of the header, and its CMake target")
      ->capture_default_str();
  add_checkpoint_flags(*command, options->checkpoint);
  command
      ->add_option("--samples", options->samples,
                   "recorded observations; default: 1000, or fewer of large pictures")
      ->check(CLI::Range(1, 10'000'000));
  command
      ->add_option("--evaluate", options->episodes,
                   "episodes that measure the return with each type of weights")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  command->add_option("--contract", options->contract,
                      "contract.json of an earlier export, from which this policy must not differ");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { export_policy(*options); });
}

} // namespace troupe::experiments::commands
