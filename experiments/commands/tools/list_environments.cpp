#include "experiments/commands/tools/list_environments.hpp"

#include <cstdio>
#include <vector>

#include "env/make/describe.hpp"
#include "env/make/task_options.hpp"
#include "experiments/commands/json.hpp"

namespace troupe::experiments::commands {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) {
      text += ',';
    }
    text += std::to_string(size);
  }
  return text + "]";
}

Json environment_json(const env::Description& environment) {
  const env::EnvironmentSpec& spec = environment.spec;
  Json observations = Json::array();
  for (const env::ArraySpec& array : spec.observations) {
    observations.push_back(
        {{"name", array.name}, {"type", env::element_name(array.type)}, {"shape", array.shape}});
  }
  Json all{{"name", environment.name},
           {"tags", environment.tags},
           {"observations", observations},
           {"action_size", spec.action.size()},
           {"control_timestep_seconds", spec.control_timestep_seconds},
           {"episode_steps", spec.episode_steps}};
  for (const env::GymOption& option : env::task_options(environment.name)) {
    all["options"].push_back({{"name", option.name},
                              {"default", option.default_value},
                              {"rule", option.rule},
                              {"help", option.help}});
  }
  if (!environment.problem.empty()) {
    all["problem"] = environment.problem;
  }
  return all;
}

void print_environment(const env::Description& environment) {
  const env::EnvironmentSpec& spec = environment.spec;
  std::string tags;
  for (const std::string& tag : environment.tags) {
    if (!tags.empty()) {
      tags += ',';
    }
    tags += tag;
  }
  std::string arrays = environment.problem;
  for (const env::ArraySpec& array : spec.observations) {
    if (!arrays.empty()) {
      arrays += ' ';
    }
    arrays += array.name + shape_text(array.shape);
  }
  const std::string steps =
      spec.episode_steps > 0 ? std::to_string(spec.episode_steps) : "no limit";
  std::printf("%-26s action [%zu]%s %6.4g s %8s steps  %-18s %s\n", environment.name.c_str(),
              spec.action.size(), spec.action.size() < 10 ? " " : "", spec.control_timestep_seconds,
              steps.c_str(), tags.empty() ? "-" : tags.c_str(), arrays.c_str());
}

void print_details(const env::Description& environment) {
  const env::EnvironmentSpec& spec = environment.spec;
  std::printf("%s\n", environment.name.c_str());
  if (!environment.problem.empty()) {
    std::printf("  %s\n", environment.problem.c_str());
    return;
  }
  for (const std::string& tag : environment.tags) {
    std::printf("  tag          %s\n", tag.c_str());
  }
  for (const env::ArraySpec& array : spec.observations) {
    std::printf("  observation  %s %s %s\n", array.name.c_str(), env::element_name(array.type),
                shape_text(array.shape).c_str());
  }
  for (std::size_t i = 0; i < spec.action.size(); ++i) {
    if (const std::int64_t n = spec.action.choices_of(i); n != 0)
      std::printf("  action       %zu: one of %lld\n", i, static_cast<long long>(n));
    else
      std::printf("  action       %zu: %g to %g\n", i, spec.action.minimum[i],
                  spec.action.maximum[i]);
  }
  std::printf("  step         %g s\n", spec.control_timestep_seconds);
  std::printf("  episode      %s\n", spec.episode_steps > 0
                                         ? (std::to_string(spec.episode_steps) + " steps").c_str()
                                         : "no limit");
  for (const env::GymOption& option : env::task_options(environment.name)) {
    std::printf("  option       %s=%s\n                 %s; %s\n", option.name.c_str(),
                option.default_value.c_str(), option.help.c_str(), option.rule.c_str());
  }
}

} // namespace

void list_environments(const std::string& name, bool json) {
  if (!name.empty()) {
    const env::Description one = env::describe_environment(name);
    if (json) {
      print_json(environment_json(one));
    } else {
      print_details(one);
    }
    return;
  }
  Json all = Json::array();
  for (const env::Description& environment : env::describe_environments()) {
    if (json) {
      all.push_back(environment_json(environment));
    } else {
      print_environment(environment);
    }
  }
  if (json) {
    print_json(all);
  }
}

} // namespace troupe::experiments::commands
