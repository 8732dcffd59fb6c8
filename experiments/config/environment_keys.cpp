#include "experiments/config/environment_keys.hpp"

#include "experiments/config/config.hpp"
#include "experiments/config/parse.hpp"
#include "experiments/config/plan.hpp"

namespace troupe::experiments {
namespace {

constexpr std::string_view kBlockDot = "environment.";

/// Removes the names of the block from the complaint.
std::string without_block(std::string complaint) {
  for (auto at = complaint.find(kBlockDot); at != std::string::npos;
       at = complaint.find(kBlockDot, at))
    complaint.erase(at, kBlockDot.size());
  return complaint;
}

} // namespace

env::EnvironmentConfig environment_of_keys(const std::vector<std::string>& assignments) {
  Experiment experiment;
  std::vector<std::string> complaints;
  for (const std::string& assignment : assignments) {
    Origins ignored;
    const std::string whole = std::string(kBlockDot) + assignment;
    const std::string complaint = apply_override(whole, experiment, ignored);
    if (!complaint.empty()) // without the prefix "--set key=value: "
      complaints.push_back(without_block(complaint.substr(whole.size() + 8)));
  }
  Environment& environment = *experiment.mutable_environment();
  fill_defaults(environment);
  if (complaints.empty())
    check_rules(environment, "", {}, "", complaints);
  if (complaints.empty())
    for (const std::string& complaint : check_environment(environment, {}))
      complaints.push_back(without_block(complaint));
  if (!complaints.empty())
    throw ConfigError(complaints);
  return plan_environment(environment);
}

} // namespace troupe::experiments
