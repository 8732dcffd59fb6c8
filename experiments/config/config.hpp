#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/config/experiment.pb.h"

namespace troupe::experiments {

/// Errors in an experiment file or in `--set`, one line each: "file:line:column: key …" with the
/// value, the rule and the nearest names. what() returns the first.
class ConfigError : public std::invalid_argument {
public:
  explicit ConfigError(std::vector<std::string> complaints);
  const std::vector<std::string>& complaints() const { return complaints_; }

private:
  std::vector<std::string> complaints_;
};

/// Reads an experiment in Protobuf text format together with its base (base.hpp), applies
/// `overrides` ("key=value", a list as "1,2,3", "key=" for the default), fills in all defaults and
/// checks all rules. The result is complete: every key is set, except in omitted optional blocks
/// (environment.pixels). `source` names the text in messages, its folder contains the base, and it
/// is the default of `name`. Paths of plug-ins become absolute: those of the text are relative to
/// that folder, those of `overrides` to the working directory. Throws ConfigError.
Experiment parse_experiment(const std::string& text, const std::string& source,
                            const std::vector<std::string>& overrides = {});

/// Reads a file of at most 1 MiB. Throws ConfigError.
std::string read_config_file(const std::filesystem::path& file);

/// Like parse_experiment(), from a file. Throws ConfigError also if the file cannot be read.
Experiment load_experiment(const std::filesystem::path& file,
                           const std::vector<std::string>& overrides = {});

/// Formats a complete experiment as text that parse_experiment() reads back as an equal experiment.
std::string resolved_text(const Experiment& experiment);

/// Finds `name_or_path` as a path, or as the name of a file in `folders` (with or without
/// ".textproto"). If there is none, throws ConfigError with the nearest names. `kinds` is the kind
/// of file in the singular ("experiment"; `troupe list` takes the plural).
std::filesystem::path find_config(const std::string& name_or_path,
                                  const std::vector<std::filesystem::path>& folders,
                                  const std::vector<std::string>& kinds = {"experiment"});

/// The names of the files in `folders`, without ".textproto", sorted.
std::vector<std::string> config_names(const std::vector<std::filesystem::path>& folders);

} // namespace troupe::experiments
