#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

namespace troupe::experiments::commands {

/// What may stand where the cursor is.
struct Completions {
  struct Word {
    std::string text;
    std::string help; // one line; may be empty
  };
  std::vector<Word> words;
  bool files = false; // no name fits: files and folders
};

/// `words` are those after the program's name; the last one, which may be empty, is to be
/// completed. Commands, options and their choices come from `app` as it is parsed; names of
/// experiments, clusters, sweeps, tasks, runs and keys from where the commands find them.
Completions complete_words(const CLI::App& app, const std::vector<std::string>& words);

} // namespace troupe::experiments::commands
