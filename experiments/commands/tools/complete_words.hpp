#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// The possible completions at the cursor.
struct Completions {
  struct Word {
    std::string text;
    std::string help; // one line; may be empty
  };
  std::vector<Word> words;
  bool files = false; // no name fits: offer files and folders
};

/// Returns completions for the last of `words`, which may be empty; `words` are the words after the
/// program's name. Commands, options and their choices come from `app`, as it parses them. Names of
/// experiments, clusters, sweeps, tasks, runs and keys come from the places where the commands look
/// for them.
Completions complete_words(const CLI::App& app, const std::vector<std::string>& words);

} // namespace troupe::experiments::commands
