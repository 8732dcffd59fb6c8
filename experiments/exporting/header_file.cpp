#include "experiments/exporting/header_file.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "experiments/exporting/exported_files.hpp"
#include "experiments/exporting/header_statements.hpp"
#include "experiments/exporting/header_text.hpp"
#include "experiments/exporting/samples.hpp"
#include "experiments/run_folder/run_folder.hpp"

namespace troupe::experiments {
namespace {

void add_elements(std::string& out, const char* name, const std::vector<ContractElement>& all) {
  out += std::string("inline constexpr troupe_policy::Element ") + name + "[] = {\n";
  for (const ContractElement& element : all)
    out += "    {" + cpp_string(element.name) + ", " + cpp_string(element.unit) + ", "
           + literal(element.minimum) + ", " + literal(element.maximum) + "},\n";
  out += "};\n";
}

void add_contract(std::string& out, const PolicyContract& contract) {
  std::vector<ContractElement> observed;
  for (const ContractArray& array : contract.observations) {
    if (array.elements.empty()) {
      std::string unit = env::element_name(array.spec.type);
      for (const std::int64_t size : array.spec.shape)
        unit += " " + text(size);
      observed.push_back({.name = array.spec.name, .unit = unit});
    }
    observed.insert(observed.end(), array.elements.begin(), array.elements.end());
  }
  add_elements(out, "kObservation", observed);
  add_elements(out, "kAction", contract.actions);
  char period[64];
  std::snprintf(period, sizeof period, "%.17g", contract.control_period_seconds);
  out += "inline constexpr troupe_policy::Contract kContract = {" + cpp_string(contract.task)
         + ", kObservation, " + std::to_string(observed.size()) + ", kAction, "
         + std::to_string(contract.actions.size()) + ", " + std::to_string(contract.history) + ", "
         + period + "};\n";
}

void add_scales(std::string& out, const PolicyContract& contract) {
  for (std::size_t a = 0; a < contract.observations.size(); ++a) {
    const ContractArray& array_ = contract.observations[a];
    if (array_.mean.empty())
      continue;
    const std::string i = std::to_string(a);
    array(out, "float", "mean" + i, array_.mean.size(),
          [&](std::size_t k) { return literal(array_.mean[k]); });
    array(out, "float", "inverse" + i, array_.mean.size(),
          [&](std::size_t k) { return literal(1 / array_.deviation[k]); });
  }
  array(out, "float", "gain", contract.scales.size(),
        [&](std::size_t k) { return literal(contract.scales[k].gain); });
  array(out, "float", "offset", contract.scales.size(),
        [&](std::size_t k) { return literal(contract.scales[k].offset); });
}

void replace_all(std::string& in, const std::string& old, const std::string& with) {
  for (std::size_t at = in.find(old); at != std::string::npos; at = in.find(old, at + with.size()))
    in.replace(at, old.size(), with);
}

/// The difference that the project's test allows, in the units of the actions.
std::string tolerance_of(const PolicyContract& contract) {
  double most = 1;
  for (std::size_t i = 0; i < contract.actions.size(); ++i)
    if (contract.actions[i].choices == 0)
      most = std::max(most, contract.scales[i].gain);
  char made[64];
  std::snprintf(made, sizeof made, "%.3g", kLargestDifference * most);
  return made;
}

constexpr const char* kPolicyClass = R"class(
/// The policy behind its contract: observations as the environment has them, actions within its
/// bounds. One thread at a time. Does not allocate, lock or throw. An object of static storage, or
/// a member, rather than a local variable: it is large.
class Policy {
public:
  using Frame = %FRAME%;
  static constexpr int kFrameSize = %FRAME_SIZE%; // numbers or bytes of one frame
  static constexpr int kHistory = %HISTORY%;
  static constexpr int kVectorSize = %VECTORS%; // numbers beside the frames
  static constexpr int kActionSize = %ACTIONS%;

  /// Forgets the episode: before the first step of the next one.
  void reset() {
    remembered_ = 0;
    last_choice_ = 0;
    for (float& number : memory_)
      number = 0.0F;
  }

  /// Of the newest frame; keeps the history itself. False: a number is not finite; nothing changed.
  bool step(const Frame* frame, const float* vectors, float* action) {
    if constexpr (kHistory == 1)
      return act(frame, vectors, action);
    if (!troupe_policy::all_finite(frame, kFrameSize)
        || (kVectorSize > 0 && !troupe_policy::all_finite(vectors, kVectorSize)))
      return false;
    if (remembered_ == 0)
      for (int i = 0; i < kHistory; ++i)
        std::memcpy(history_ + i * kFrameSize, frame, sizeof(Frame) * kFrameSize);
    else {
      std::memmove(history_, history_ + kFrameSize, sizeof(Frame) * (kHistory - 1) * kFrameSize);
      std::memcpy(history_ + (kHistory - 1) * kFrameSize, frame, sizeof(Frame) * kFrameSize);
    }
    remembered_ = 1;
    return act(history_, vectors, action);
  }
  bool step(const Frame* frame, float* action) { return step(frame, nullptr, action); }

  /// Of kHistory frames, oldest first. `vectors` may be null where kVectorSize is 0.
  bool act(const Frame* frames, const float* vectors, float* action) {
    using namespace troupe_policy;
    (void)vectors;
%STATEMENTS%  }

private:
  alignas(64) float x_[%WIDEST%] = {};
  alignas(64) float y_[%WIDEST%] = {};
%SCRATCH%  float memory_[%MEMORY%] = {};
  Frame history_[kHistory > 1 ? kHistory * kFrameSize : 1] = {};
  int last_choice_ = 0; // plus 1
  int remembered_ = 0;
};
)class";

} // namespace

void write_header(const std::filesystem::path& folder, const std::string& name,
                  const learner::PolicyGraph& graph, const PolicyContract& contract,
                  learner::WeightType type) {
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), letter)
      || std::isdigit(static_cast<unsigned char>(name[0])))
    throw std::invalid_argument("--namespace '" + name
                                + "' is not a C++ name; use letters, digits and _");
  std::string out = "// A policy for " + contract.task + ", trained by " + contract.agent + " for "
                    + text(contract.updates) + " updates and exported by Troupe " + contract.version
                    + ". Weights: " + learner::weight_type_name(type)
                    + ".\n// C++17, no dependency. #include \"policy.hpp\"; " + name
                    + "::Policy acts, " + name
                    + "::kContract says what it takes.\n#pragma once\n\n";
  out += kPolicyRuntime;
  out += "\nnamespace " + name + " {\n\n";
  add_contract(out, contract);
  out += "\nnamespace weights {\n";
  for (std::size_t i = 0; i < graph.layers.size(); ++i)
    add_layer_numbers(out, graph.layers[i], i, type);
  out += "} // namespace weights\n";
  add_scales(out, contract);
  const HeaderStatements statements = header_statements(graph, contract, type);
  std::string policy = kPolicyClass;
  replace_all(policy, "%STATEMENTS%", statements.text);
  replace_all(policy, "%FRAME%", graph.picture ? "std::uint8_t" : "float");
  replace_all(policy, "%FRAME_SIZE%", text(graph.inputs / contract.history));
  replace_all(policy, "%HISTORY%", std::to_string(contract.history));
  replace_all(policy, "%VECTORS%", text(graph.vectors));
  replace_all(policy, "%ACTIONS%", text(graph.action_size()));
  replace_all(policy, "%WIDEST%", text(statements.widest));
  replace_all(policy, "%SCRATCH%", statements.scratch);
  replace_all(policy, "%MEMORY%", text(std::max<std::int64_t>(1, graph.state_size())));
  out += policy + "\n} // namespace " + name + "\n";
  write_text(folder / "policy.hpp", out);
  std::string cmake = kPolicyCMake;
  replace_all(cmake, "%NAME%", name);
  replace_all(cmake, "%TOLERANCE%", tolerance_of(contract));
  write_text(folder / "CMakeLists.txt", cmake);
  write_text(folder / "parity.cpp", kParityProgram);
}

} // namespace troupe::experiments
