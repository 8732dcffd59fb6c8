#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/protocol/run_config.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// RUN/live.json: the last progress report with what metrics.csv has no columns for: where actors
/// spend their time, each replay shard, waiting requests, the memory of this process. Replaced
/// whole at each report, also readable after the run. One JSON object; numbers that are not finite
/// are null. One thread.
class LiveFile {
public:
  explicit LiveFile(const std::filesystem::path& run);

  /// False if it could not be written, which costs the file alone.
  bool write(const actors::Progress& progress, UtcTime now);

private:
  std::filesystem::path path_;
};

/// Its text; empty if there is none, or if it is above 1 MiB.
std::optional<std::string> read_live_file(const std::filesystem::path& run);

} // namespace troupe::experiments
