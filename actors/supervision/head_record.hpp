#pragma once

#include <filesystem>
#include <optional>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/run_config.hpp"

namespace troupe::actors {

/// What a head leaves for its successor, which takes its processes over: checkpoints/head.state of
/// the run's folder.
std::filesystem::path head_record_file(const std::filesystem::path& run);

/// Replaces it atomically, on a full disk too unless it has grown by blocks of 8 KiB. Throws
/// std::runtime_error naming path and reason.
void write_head_record(const std::filesystem::path& run, const wire::HeadRecord& record);

/// Throws std::filesystem::filesystem_error.
void remove_head_record(const std::filesystem::path& run);

/// Throws std::runtime_error, naming the file and what is wrong, if there is none, or if it is
/// damaged, of another build or not of a run of this configuration.
wire::HeadRecord read_head_record(const std::filesystem::path& run, const RunConfig& config);

} // namespace troupe::actors
