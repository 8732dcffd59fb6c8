#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

#include "actors/protocol/head_record.pb.h"
#include "actors/protocol/run_config.hpp"

namespace troupe::actors {

/// Returns the path of the record that a head leaves for its successor, which takes over its
/// processes: checkpoints/head.state in the run's folder.
std::filesystem::path head_record_file(const std::filesystem::path& run);

/// Replaces the record atomically, even on a full disk unless it needs more blocks of 8 KiB than
/// before. Throws std::runtime_error naming the path and the reason.
void write_head_record(const std::filesystem::path& run, const wire::HeadRecord& record);

/// Removes the record, if the file system allows it.
void remove_head_record(const std::filesystem::path& run);

/// Throws std::runtime_error naming the file and the problem if the record does not exist, is
/// damaged, or was written by another build or a run with another configuration.
wire::HeadRecord read_head_record(const std::filesystem::path& run, const RunConfig& config);

/// Parses the content of that file. Throws std::runtime_error or std::invalid_argument with the
/// problem. Used by read_head_record() and the fuzzer.
wire::HeadRecord parse_head_record(std::span<const std::byte> bytes, const RunConfig& config);

} // namespace troupe::actors
