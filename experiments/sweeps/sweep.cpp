#include "experiments/sweeps/sweep.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include <google/protobuf/descriptor.h>

#include "experiments/config/config.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/parse.hpp"

namespace troupe::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRuns = 10'000;
constexpr const char* kListSeeds = "; list the seeds in seed: [1, 2], or with --seeds 1,2";

/// "n_step" for "replay.n_step"; the whole key if two keys end alike.
std::string short_key(const std::string& key, const Sweep& sweep) {
  const auto tail = [](const std::string& k) { return k.substr(k.rfind('.') + 1); };
  const auto alike = std::count_if(sweep.vary().begin(), sweep.vary().end(),
                                   [&](const Vary& vary) { return tail(vary.key()) == tail(key); });
  return alike > 1 ? key : tail(key);
}

/// Keeps letters, digits and "._+-="; replaces other characters, which a shell or a path might
/// interpret, by "_".
std::string folder_word(std::string text) {
  for (char& c : text) {
    const bool plain = (std::isalnum(static_cast<unsigned char>(c)) != 0)
                       || std::string_view("._+-=").find(c) != std::string_view::npos;
    c = plain ? c : '_';
  }
  return text;
}

/// A value for each varied key, and a variant.
struct Combination {
  std::string name = {};                   // "_n_step=3_variant=no_fading"
  std::vector<std::string> overrides = {}; // "key=value"
};

/// Every combination of the values of `vary` and the variants; the variants vary fastest, then the
/// last key.
std::vector<Combination> combinations(const Sweep& sweep) {
  std::vector<Combination> all(1);
  const auto combine_with = [&all](const std::vector<Combination>& choices) {
    std::vector<Combination> more;
    for (const Combination& before : all) {
      for (const Combination& choice : choices) {
        Combination& made = more.emplace_back(before);
        made.name += choice.name;
        made.overrides.insert(made.overrides.end(), choice.overrides.begin(),
                              choice.overrides.end());
      }
    }
    all = std::move(more);
  };
  for (const Vary& vary : sweep.vary()) {
    std::vector<Combination> values;
    for (const std::string& value : vary.value()) {
      values.push_back({"_" + folder_word(short_key(vary.key(), sweep) + "=" + value),
                        {vary.key() + "=" + value}});
    }
    combine_with(values);
  }
  std::vector<Combination> variants;
  for (const Variant& variant : sweep.variant()) {
    variants.push_back(
        {"_variant=" + variant.name(), {variant.set().begin(), variant.set().end()}});
  }
  if (!variants.empty()) {
    combine_with(variants);
  }
  return all;
}

/// Whether a sweep has at most kMostRuns runs.
bool is_small_enough(const Sweep& sweep) {
  std::vector<int> sizes = {sweep.experiment_size(), sweep.seed_size(),
                            std::max(1, sweep.variant_size())};
  for (const Vary& vary : sweep.vary()) {
    sizes.push_back(vary.value_size());
  }
  std::size_t count = 1;
  for (const int size : sizes) {
    count = std::min(kMostRuns + 1, count * static_cast<std::size_t>(size));
  }
  return count <= kMostRuns;
}

fs::path find_run_file(const std::string& name, const fs::path& source,
                       const std::vector<fs::path>& folders) {
  for (const char* suffix : {"", ".textproto"}) {
    const fs::path beside = source.parent_path() / (name + suffix);
    std::error_code ignored;
    if (!source.empty() && fs::is_regular_file(beside, ignored)) {
      return beside;
    }
  }
  return find_config(name, folders);
}

/// "dqn_cartpole" for games/dqn_cartpole.textproto; "games_dqn_cartpole" if another experiment of
/// the sweep has that file name in another folder.
std::string group_of(const std::string& name, const Sweep& sweep) {
  const auto stem = [](const std::string& one) { return fs::path(one).stem().string(); };
  const auto alike = std::count_if(
      sweep.experiment().begin(), sweep.experiment().end(),
      [&](const std::string& other) { return other != name && stem(other) == stem(name); });
  return folder_word(alike == 0 ? stem(name)
                                : fs::path(name).replace_extension().relative_path().string());
}

/// Whether the goal for experiment `named` applies to `listed`, given as listed or by its file name
/// alone.
bool is_goal_of(const std::string& named, const std::string& listed) {
  return named == listed || named == fs::path(listed).stem().string();
}

/// Complaints contain the name of the run.
Experiment load_run(const SweepRun& run) try {
  return load_experiment(run.file, run.overrides);
} catch (const ConfigError& mistake) {
  auto complaints = mistake.complaints();
  complaints.front() += " (run " + run.name + ")";
  throw ConfigError(complaints);
}

/// Whether both keys are the same, or one is a block that contains the other.
bool overlap(const std::string& one, const std::string& other) {
  return one == other || one.starts_with(other + ".") || other.starts_with(one + ".");
}

/// Adds complaints about assignments in the list `name` that a seed or a value of `vary` would
/// override.
void check_assignments(const google::protobuf::RepeatedPtrField<std::string>& assignments,
                       const std::string& name, const std::set<std::string>& varied,
                       const Origins& origins, const std::string& source,
                       std::vector<std::string>& complaints) {
  for (int i = 0; i < assignments.size(); ++i) {
    const std::string key = assignments[i].substr(0, assignments[i].find('='));
    const std::string element = element_name(name, i);
    const std::string text =
        origin_of(origins, element, source) + element + " is \"" + assignments[i] + "\"";
    if (key == "seed") {
      complaints.push_back(text + kListSeeds);
    }
    for (const std::string& other : varied) {
      if (overlap(key, other)) {
        complaints.push_back(text + ", but " + other + " is varied; list all values in vary");
      }
    }
  }
}

/// Checks relations between keys; the rules of single keys have been checked.
std::vector<std::string> check_sweep(const Sweep& sweep, const Origins& origins,
                                     const std::string& source) {
  std::vector<std::string> complaints;
  if (sweep.experiment_size() == 0) {
    complaints.push_back(source + ": experiment is not given; name at least one");
  }
  std::set<std::string> varied;
  for (int i = 0; i < sweep.vary_size(); ++i) {
    const Vary& vary = sweep.vary(i);
    const std::string key = std::string("vary[") + std::to_string(i) + "]";
    const std::string at = origin_of(origins, key, source);
    if (vary.key() == "seed") {
      complaints.push_back(at + key + ".key is \"seed\"" + kListSeeds);
    } else if (const auto* field = find_key(vary.key()); field == nullptr) {
      const std::size_t dot = vary.key().rfind('.');
      const std::string block = dot == std::string::npos ? "" : vary.key().substr(0, dot);
      complaints.push_back(at + key + ".key is \"" + vary.key()
                           + "\", which is not a key of an experiment"
                           + did_you_mean(block, vary.key().substr(dot + 1))
                           + where_keys_are(*Experiment::descriptor()));
    } else if (!varied.insert(vary.key()).second) {
      complaints.push_back(at + key + ".key is \"" + vary.key()
                           + "\", which another vary has too; list all values in one vary");
    }
    if (vary.value_size() == 0) {
      complaints.push_back(at + key + ".value is not given; list the values of " + vary.key());
    }
  }
  check_assignments(sweep.set(), "set", varied, origins, source, complaints);
  std::set<std::string> variants;
  for (int i = 0; i < sweep.variant_size(); ++i) {
    const std::string& name = sweep.variant(i).name();
    const std::string key = std::string("variant[") + std::to_string(i) + "]";
    const std::string at = origin_of(origins, key, source);
    if (name.empty() || folder_word(name) != name || name.find('=') != std::string::npos) {
      complaints.push_back(at + key + ".name is \"" + name
                           + "\"; folders are named after it: use letters, digits and ._+-");
    } else if (!variants.insert(name).second) {
      complaints.push_back(at + key + ".name is \"" + name
                           + "\", which another variant has too; give each its own name");
    }
    check_assignments(sweep.variant(i).set(), key + ".set", varied, origins, source, complaints);
  }
  for (int i = 0; i < sweep.goal_size(); ++i) {
    const auto& names = sweep.experiment();
    const std::string& wanted = sweep.goal(i).experiment();
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return is_goal_of(wanted, name); })) {
      const std::string key = std::string("goal[") + std::to_string(i) + "]";
      complaints.push_back(origin_of(origins, key, source) + key + ".experiment is \"" + wanted
                           + "\", which is not one of the sweep's");
    }
  }
  return complaints;
}

} // namespace

bool is_sweep(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string::npos && line.compare(begin, 10, "experiment") == 0) {
      const std::size_t next = line.find_first_not_of(" \t", begin + 10);
      return next != std::string::npos && line[next] == ':';
    }
  }
  return false;
}

Sweep parse_sweep(const std::string& text, const std::string& source) {
  Sweep sweep;
  Origins origins;
  if (const std::string complaint = parse_text(text, source, sweep, origins); !complaint.empty()) {
    throw ConfigError({complaint});
  }
  fill_defaults(sweep);
  std::vector<std::string> complaints;
  check_rules(sweep, "", origins, source, complaints);
  if (complaints.empty()) {
    complaints = check_sweep(sweep, origins, source);
  }
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
  if (sweep.name().empty()) {
    sweep.set_name(fs::path(source).stem().string());
  }
  return sweep;
}

void add_varied(const std::vector<std::string>& varied, Sweep& sweep) {
  for (const std::string& text : varied) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      throw ConfigError({"--vary " + text + ": write --vary key=value,value"});
    }
    Vary& vary = *sweep.add_vary();
    vary.set_key(text.substr(0, equals));
    std::istringstream values(text.substr(equals + 1));
    for (std::string value; std::getline(values, value, ',');) {
      vary.add_value(value);
    }
  }
  const auto complaints = check_sweep(sweep, {}, "flags");
  if (!complaints.empty()) {
    throw ConfigError(complaints);
  }
}

std::vector<SweepRun> plan_sweep(const Sweep& sweep, const fs::path& source,
                                 const std::vector<fs::path>& folders) {
  std::vector<SweepRun> runs;
  std::set<std::string> names;
  if (!is_small_enough(sweep)) { // checked first, because every combination takes memory
    throw ConfigError({sweep.name() + ": has more than " + std::to_string(kMostRuns)
                       + " runs; list fewer values, or split it"});
  }
  const auto all = combinations(sweep);
  for (const std::string& name : sweep.experiment()) {
    const fs::path file = find_run_file(name, source, folders);
    for (const Combination& combination : all) {
      SweepRun run;
      run.group = group_of(name, sweep) + combination.name;
      run.file = file;
      run.overrides.assign(sweep.set().begin(), sweep.set().end());
      run.overrides.insert(run.overrides.end(), combination.overrides.begin(),
                           combination.overrides.end());
      for (const Goal& goal : sweep.goal()) {
        if (is_goal_of(goal.experiment(), name)) {
          run.goal = goal.value();
        }
      }
      for (const std::uint64_t seed : sweep.seed()) {
        SweepRun one = run;
        one.name = run.group + "_seed=" + std::to_string(seed);
        one.overrides.push_back("seed=" + std::to_string(seed));
        if (!names.insert(one.name).second) {
          throw ConfigError({sweep.name() + ": has two runs with the name " + one.name
                             + "; list each experiment, value and seed once"});
        }
        one.experiment = load_run(one);
        runs.push_back(std::move(one));
      }
    }
  }
  return runs;
}

} // namespace troupe::experiments
