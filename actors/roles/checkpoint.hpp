#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Checkpoints of a run as files: <run>/checkpoints/<updates>/, complete once they have that name.
/// No actor, thread or clock; all functions wait for the disk. They throw std::runtime_error
/// (std::system_error on a failed system call) naming the file and the reason.

/// Lists the files of `partial` with sizes and checksums in a sealed manifest, flushes everything
/// to the disk, then gives the folder its name, replacing a checkpoint of the same name. If the
/// process is killed at any moment, one of the two remains whole.
void commit_checkpoint(const std::filesystem::path& partial, const std::filesystem::path& complete,
                       wire::Manifest manifest);

/// Reads and checks a checkpoint's manifest: its own bytes, version, and every file there with its
/// size.
wire::Manifest read_manifest(const std::filesystem::path& checkpoint);

/// Reads and verifies every byte of a checkpoint. Throws std::runtime_error naming the file and the
/// damage.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// Cleans a run's folder of checkpoints after a killed process or an incomplete checkpoint; for the
/// holder of the run's lock.
void clear_checkpoint_remains(const std::filesystem::path& checkpoints);

/// The complete checkpoint of a run's folder with the most updates; empty when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run_folder);

/// Records the return of an evaluation of these parameters.
void score_checkpoint(const std::filesystem::path& checkpoint, double evaluation_return);

/// One of several, for surplus().
struct ScoredCheckpoint {
  std::int64_t updates = 0;
  std::optional<double> evaluation_return = {};
};

/// The checkpoints to remove, of a list by ascending updates: all but the `keep` newest and the
/// `keep_best` with the greatest returns (of equal ones the newer).
std::vector<bool> surplus(std::span<const ScoredCheckpoint> checkpoints, int keep, int keep_best);

/// The complete ones below a folder of checkpoints, by ascending updates. One whose manifest cannot
/// be read has no return.
std::vector<ScoredCheckpoint> scored_checkpoints(const std::filesystem::path& checkpoints);

/// Removes surplus(). Removes each manifest first, so that no partial checkpoint looks complete.
void remove_surplus(const std::filesystem::path& checkpoints, int keep, int keep_best);

/// Folders replay/shard-0, shard-1, ... of a checkpoint, in order; throws when one is missing.
std::vector<std::filesystem::path> saved_shards(const std::filesystem::path& replay);

} // namespace troupe::actors
