#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>

#include "env/nearest_names.hpp"
#include "env/text/joined.hpp"
#include "experiments/commands/commands.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/commands/json.hpp"
#include "experiments/commands/tools/list_environments.hpp"
#include "experiments/config/cluster.pb.h"
#include "experiments/config/config.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/replay_tables.pb.h"
#include "experiments/config/sweep.pb.h"
#include "learner/agents/agent_kinds.hpp"
#include "learner/agents/own_agents.hpp"

namespace troupe::experiments::commands {
namespace {

/// Lists the keys of `block` ("replay", "environment.pixels"); if `block` is a key, only that one.
void list_keys(const Schema& schema, const std::string& block, bool json) {
  Json all = Json::array();
  std::set<std::string> blocks;
  bool found = false;
  for (const Key& key : all_keys(schema)) {
    if (const auto dot = key.name.rfind('.'); dot != std::string::npos) {
      blocks.insert(key.name.substr(0, dot));
    }
    if (!block.empty() && key.name != block && !key.name.starts_with(block + ".")) {
      continue;
    }
    found = true;
    const Rule& rules = rule_of(*key.field);
    const std::string rule = rule_text(*key.field);
    if (json) {
      all.push_back({{"key", key.name},
                     {"default", default_text(*key.field)},
                     {"rule", rule},
                     {"unit", rules.unit()},
                     {"help", rules.help()}});
      continue;
    }
    const std::string value = default_text(*key.field);
    std::printf("%s = %s\n    %s; %s\n", key.name.c_str(), value.empty() ? "\"\"" : value.c_str(),
                rules.help().c_str(), rule.c_str());
  }
  if (!found) {
    const auto near = env::nearest_names(block, {blocks.begin(), blocks.end()}, 1);
    throw std::invalid_argument("list: " + block + " is not a block of keys"
                                + (near.empty() ? "" : "; did you mean " + near.front() + "?"));
  }
  if (json) {
    print_json(all);
  }
}

/// The keys of other blocks for which an agent has its own default.
Json run_defaults(const learner::RunDefaults& run) {
  Json made = Json::object();
  const auto add = [&](const char* key, double value) {
    if (value > 0) {
      made[key] = value;
    }
  };
  add("replay.n_step", run.n_step);
  add("replay.samples_per_insert / batch_size", run.updates_per_step);
  add("learner.publish_period", run.publish_period);
  return made;
}

void list_agents(const std::string& plugin, bool json) {
  Json all = Json::array();
  for (const learner::AgentKind& kind :
       plugin.empty() ? learner::agent_kinds() : learner::plugin_agents(plugin)) {
    std::vector<std::string> observations;
    if (kind.states) {
      observations.emplace_back("states");
    }
    if (kind.pixels) {
      observations.emplace_back("pixels");
    }
    if (kind.both) {
      observations.emplace_back("both together");
    }
    if (json) {
      all.push_back({{"name", kind.name},
                     {"help", kind.help},
                     {"observations", observations},
                     {"actions", learner::action_text(kind.actions)},
                     {"recurrent", kind.recurrent},
                     {"replicas", true},
                     {"asynchronous", kind.asynchronous},
                     {"defaults", run_defaults(kind.run)}});
    } else {
      std::printf("%-8s %s\n         %s%s; actions: %s; replicas%s\n", kind.name.c_str(),
                  kind.help.c_str(), env::joined(observations, " or ").c_str(),
                  kind.recurrent ? ", also partially observed ones" : "",
                  learner::action_text(kind.actions),
                  kind.asynchronous ? ", also asynchronous ones" : "");
      if (const Json own = run_defaults(kind.run); !own.empty()) {
        std::string text;
        for (const auto& [key, value] : own.items()) {
          text += (text.empty() ? "" : ", ") + key + " " + number_text(value.get<double>());
        }
        std::printf("         defaults: %s\n", text.c_str());
      }
    }
  }
  if (json) {
    print_json(all);
  }
}

/// The first comment of an experiment file is its description.
std::string first_sentence(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  for (std::string line; std::getline(in, line) && line.starts_with("# ");) {
    text += (text.empty() ? "" : " ") + line.substr(2);
    if (text.back() == '.') {
      break;
    }
  }
  return text;
}

/// Lists the files of the folders with their descriptions.
void list_files(const std::vector<std::filesystem::path>& folders, bool json) {
  Json all = Json::array();
  for (const std::string& name : config_names(folders)) {
    const auto file = find_config(name, folders);
    if (json) {
      all.push_back({{"name", name}, {"file", file.string()}, {"help", first_sentence(file)}});
    } else {
      std::printf("%-24s %s\n", name.c_str(), first_sentence(file).c_str());
    }
  }
  if (json) {
    print_json(all);
  }
}

} // namespace

void add_list(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "list", "Lists environments, agents, keys, experiments, sweeps, clusters and benchmarks");
  command->footer("Example: troupe list keys replay\n"
                  "         troupe list environments Ant-v5");
  auto what = std::make_shared<std::string>();
  auto name = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command
      ->add_option(
          "WHAT", *what,
          "environments, agents, keys, table-keys (of `troupe replay serve`), experiments, "
          "sweeps, sweep-keys, clusters, cluster-keys (of `troupe launch`) or benches")
      ->required()
      ->check(CLI::IsMember({"environments", "agents", "keys", "table-keys", "experiments",
                             "sweeps", "sweep-keys", "clusters", "cluster-keys", "benches"}));
  command->add_option("NAME", *name,
                      "an environment, to show its details and options, or a block of keys");
  auto plugin = std::make_shared<std::string>();
  command->add_option("--plugin", *plugin, "shared library with agents, to list those");
  command->add_flag("--json", *json, "as JSON");
  command->callback([what, name, plugin, json] {
    if (!plugin->empty() && *what != "agents") {
      throw std::invalid_argument("list " + *what + ": takes no --plugin; " + *plugin
                                  + " is given");
    }
    if (!name->empty() && *what != "environments" && !what->ends_with("keys")) {
      throw std::invalid_argument("list " + *what + ": takes no name; " + *name + " is given");
    }
    if (*what == "environments") {
      list_environments(*name, *json);
    } else if (*what == "agents") {
      list_agents(*plugin, *json);
    } else if (*what == "keys") {
      list_keys(*Experiment::descriptor(), *name, *json);
    } else if (*what == "table-keys") {
      list_keys(*ReplayTable::descriptor(), *name, *json);
    } else if (*what == "experiments") {
      list_files(config_folders(), *json);
    } else if (*what == "sweeps") {
      list_files(sweep_folders(), *json);
    } else if (*what == "sweep-keys") {
      list_keys(*Sweep::descriptor(), *name, *json);
    } else if (*what == "clusters") {
      list_files(cluster_folders(), *json);
    } else if (*what == "cluster-keys") {
      list_keys(*Cluster::descriptor(), *name, *json);
    } else {
      exec_bench(*json ? std::vector<std::string>{"--list", "--json"}
                       : std::vector<std::string>{"--list"});
    }
  });
}

} // namespace troupe::experiments::commands
