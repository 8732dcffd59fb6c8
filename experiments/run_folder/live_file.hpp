#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "actors/protocol/run_config.hpp"
#include "experiments/run_folder/clock.hpp"

namespace troupe::experiments {

/// RUN/live.json: the last progress report, with the values for which metrics.csv has no columns:
/// where actors spend their time, queue lengths, each replay shard, waiting requests, and the
/// memory of this process. Each report replaces the whole file, which remains after the run. It is
/// one JSON object, in which non-finite numbers are null. Use from one thread.
class LiveFile {
public:
  explicit LiveFile(const std::filesystem::path& run);

  /// Returns false if the file could not be written; the run is not affected.
  bool write(const actors::Progress& progress, UtcTime now);

private:
  std::filesystem::path path_;
};

/// The text of the file; nothing if it does not exist or is larger than 1 MiB.
std::optional<std::string> read_live_file(const std::filesystem::path& run);

} // namespace troupe::experiments
