#include "experiments/commands/tools/complete_words.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "env/make/make.hpp"
#include "experiments/commands/folders.hpp"
#include "experiments/config/cluster.pb.h"
#include "experiments/config/config.hpp"
#include "experiments/config/keys.hpp"
#include "experiments/config/replay_tables.pb.h"
#include "experiments/run_folder/head_file.hpp"

namespace troupe::experiments::commands {
namespace {

constexpr std::size_t kMostRuns = 20; // only the newest runs are offered

using Words = std::vector<Completions::Word>;

Words without_help(const std::vector<std::string>& names) {
  Words words;
  for (const std::string& name : names) {
    words.push_back({name, {}});
  }
  return words;
}

Words assignments(const Schema& schema) {
  Words words;
  for (const Key& key : all_keys(schema)) {
    words.push_back({key.name + "=", rule_of(*key.field).help()});
  }
  return words;
}

Words runs() {
  std::vector<std::filesystem::path> found = runs_below("runs");
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.filename() > b.filename(); });
  found.resize(std::min(found.size(), kMostRuns));
  Words words;
  for (const auto& run : found) {
    words.push_back({run.string(), {}});
  }
  return words;
}

Words configs_and_sweeps() {
  Words words = without_help(config_names(sweep_folders()));
  for (auto& word : without_help(config_names(config_folders()))) {
    words.push_back(std::move(word));
  }
  return words;
}

/// The choices of an option with a fixed list, which CLI11 shows as the option's type:
/// "TEXT:{a,b}".
Words choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) {
    return {};
  }
  Words words;
  std::string word;
  for (const char c : type.substr(begin + 1, end - begin)) {
    if (c == ',' || c == '}') {
      words.push_back({word, {}});
      word.clear();
    } else {
      word += c;
    }
  }
  return words;
}

/// The values that an option or positional of this name takes.
Completions values_of(const CLI::App& command, const CLI::Option& option) {
  if (Words choices = choices_of(option); !choices.empty()) {
    return {std::move(choices)};
  }
  const std::string name = option.get_name();
  if (name == "--set" || name == "--vary") {
    return {assignments(command.get_name() == "serve" ? *ReplayTable::descriptor()
                                                      : *Experiment::descriptor())};
  }
  struct Source {
    const char* name;
    std::function<Words()> words;
    bool files;
  };
  static const Source kSources[] = {
      {"RUN", runs, true},
      {"EXPERIMENT", [] { return without_help(config_names(config_folders())); }, true},
      {"WHAT", configs_and_sweeps, true},
      {"CLUSTER", [] { return without_help(config_names(cluster_folders())); }, true},
      {"TASK", [] { return without_help(env::environment_names()); }, false},
      {"TASKS", [] { return without_help(env::environment_names()); }, false},
      {"NAME", [] { return without_help(env::environment_names()); }, false},
      {"--task", [] { return without_help(env::environment_names()); }, false}};
  for (const Source& source : kSources) {
    if (name == source.name) {
      return {source.words(), source.files};
    }
  }
  return {{}, true};
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

const CLI::Option* find_option(const CLI::App& command, const std::string& word) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional() && option->check_name(word)) {
      return option;
    }
  }
  return nullptr;
}

const CLI::Option* positional(const CLI::App& command, std::size_t number) {
  for (const CLI::Option* option : command.get_options()) {
    const bool last = option->get_items_expected_max() > 1; // takes all remaining words
    if (option->get_positional() && (number-- == 0 || last)) {
      return option;
    }
  }
  return nullptr;
}

const CLI::App* find_command(const CLI::App& command, const std::string& word) {
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (below->check_name(word)) {
      return below;
    }
  }
  return nullptr;
}

Words commands_and_options(const CLI::App& command, bool options) {
  Words words;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!options && !below->get_group().empty()) { // hidden commands have no group
      words.push_back({below->get_name(), below->get_description()});
    }
  }
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (options) {
        words.push_back({"--" + name, option->get_description()});
      }
    }
  }
  return words;
}

/// Completions for the part of `last` after "--option=", if it has this form.
Completions value_behind_equals(const CLI::App& command, const std::string& last) {
  const std::string name = last.substr(0, last.find('='));
  const CLI::Option* option = find_option(command, name);
  Completions found = option == nullptr ? Completions() : values_of(command, *option);
  for (auto& word : found.words) {
    word.text = name + "=" + word.text;
  }
  found.files = false; // shells would complete the whole word
  return found;
}

Completions candidates(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  const CLI::Option* pending = nullptr; // an option whose value follows
  std::size_t positionals = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (pending != nullptr) {
      pending = nullptr;
    } else if (word.starts_with("-")) {
      const CLI::Option* option = find_option(*command, word);
      pending = option != nullptr && takes_value(*option) ? option : nullptr;
    } else if (const CLI::App* below = find_command(*command, word); below != nullptr) {
      command = below;
      positionals = 0;
    } else {
      ++positionals;
    }
  }
  const std::string last = words.empty() ? "" : words.back();
  if (pending != nullptr) {
    return values_of(*command, *pending);
  }
  if (last.starts_with("-")) {
    return last.find('=') == std::string::npos ? Completions{commands_and_options(*command, true)}
                                               : value_behind_equals(*command, last);
  }
  Completions found{commands_and_options(*command, false)};
  if (const CLI::Option* next = positional(*command, positionals); next != nullptr) {
    return values_of(*command, *next);
  }
  return found;
}

} // namespace

Completions complete_words(const CLI::App& app, const std::vector<std::string>& words) {
  Completions found = candidates(app, words);
  const std::string last = words.empty() ? "" : words.back();
  std::erase_if(found.words, [&](const auto& word) { return !word.text.starts_with(last); });
  found.files = found.files && found.words.empty();
  for (auto& word : found.words) {
    std::replace_if(
        word.help.begin(), word.help.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  }
  return found;
}

} // namespace troupe::experiments::commands
