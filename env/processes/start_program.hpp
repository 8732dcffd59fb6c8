#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <spawn.h>
#include <sys/types.h>
#include <unistd.h>

#include "env/processes/exec_words.hpp"

namespace troupe {

/// This process's environment with `changes`, each of the form "NAME=value".
inline std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const std::string& change : changes)
      replaced = replaced || change.starts_with(name);
    if (!replaced)
      result.emplace_back(text);
  }
  result.insert(result.end(), changes.begin(), changes.end());
  return result;
}

struct StandardStreams { // descriptors; -1: those of this process
  int input = -1, output = -1, error = -1;
};

/// Starts the program words[0], which is looked up in PATH if it has no slash, in this process's
/// environment with `variables`, each of the form "NAME=value". Returns -1 if it cannot be started.
inline pid_t start_program(const std::vector<std::string>& words,
                           const std::vector<std::string>& variables = {},
                           const StandardStreams& streams = {}) {
  const std::vector<std::string> environment = environment_with(variables);
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  int standard = STDIN_FILENO;
  for (const int descriptor : {streams.input, streams.output, streams.error}) {
    if (descriptor >= 0)
      ::posix_spawn_file_actions_adddup2(&actions, descriptor, standard);
    ++standard;
  }
  pid_t process = -1;
  const int error = ::posix_spawnp(&process, words[0].c_str(), &actions, nullptr,
                                   exec_words(words).data(), exec_words(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? process : -1;
}

} // namespace troupe
