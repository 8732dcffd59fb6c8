#include "experiments/commands/mistakes.hpp"

#include <utility>
#include <vector>

#include "env/nearest_names.hpp"

namespace troupe::experiments::commands {
namespace {

/// The commands of the command line, from `app` to the innermost subcommand.
std::vector<const CLI::App*> given_commands(const CLI::App& app) {
  std::vector<const CLI::App*> path{&app};
  while (!path.back()->get_subcommands().empty()) {
    path.push_back(path.back()->get_subcommands().back());
  }
  return path;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!below->get_group().empty()) { // hidden commands have no group
      names.push_back(below->get_name());
    }
  }
  return names;
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

/// The message about the first word that `command` does not know; empty if it knows all of them.
std::string stray_text(const CLI::App& command, const std::string& words) {
  const std::vector<std::string> strays = command.remaining();
  if (strays.empty()) {
    return {};
  }
  const std::string word = strays.front().substr(0, strays.front().find('='));
  const bool option = word.starts_with("-");
  const auto names = option ? names_of_options(command) : names_of_commands(command);
  std::string text = word + ": `" + words + "` has no such " + (option ? "option" : "command");
  if (!option && names.empty()) {
    text = strays.front() + ": `" + words + "` takes no such argument";
  }
  const auto near = env::nearest_names(word, names, 1);
  return near.empty() ? text : text + "; did you mean " + near.front() + "?";
}

} // namespace

std::string mistake_text(const CLI::App& app, const CLI::ParseError& mistake) {
  const auto kind = static_cast<CLI::ExitCodes>(mistake.get_exit_code());
  const bool about_words =
      kind == CLI::ExitCodes::ExtrasError || kind == CLI::ExitCodes::RequiredError;
  std::string words;
  std::string stray;
  for (const CLI::App* command : given_commands(app)) {
    words += (words.empty() ? "" : " ") + command->get_name();
    if (about_words && stray.empty()) {
      stray = stray_text(*command, words);
    }
  }
  return (stray.empty() ? std::string(mistake.what()) : stray) + " (`" + words
         + " --help` shows how)";
}

} // namespace troupe::experiments::commands
