#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/protocol/messages.pb.h"

namespace troupe::actors {

/// Checkpoints of a run as files in <run>/checkpoints/<updates>/; a folder with such a name is
/// complete. No actor, thread or clock; all functions wait for the disk. They throw
/// std::runtime_error (std::system_error on a failed system call) that names the file and the
/// reason.

/// Lists the files of `partial` with their sizes and checksums in a sealed manifest, flushes
/// everything to the disk, then renames the folder to `complete`, replacing a checkpoint of that
/// name, whose score it keeps unless it has its own. Whenever the process is killed, one of the two
/// checkpoints remains whole.
void commit_checkpoint(const std::filesystem::path& partial, const std::filesystem::path& complete,
                       wire::Manifest manifest);

/// Reads and checks a checkpoint's manifest: its checksum, its version, and that every listed file
/// exists and has the listed size.
wire::Manifest read_manifest(const std::filesystem::path& checkpoint);

/// Reads and verifies every byte of a checkpoint. Throws std::runtime_error naming the file and the
/// damage.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// Thrown for a manifest of another version of the program, which is not damaged.
struct OtherVersion : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Removes what a killed process or a failed checkpoint left in a run's folder of checkpoints. Only
/// the holder of the run's lock may call it.
void clear_checkpoint_remains(const std::filesystem::path& checkpoints);

/// Returns the complete checkpoint with the most updates in a run's folder, or an empty path if
/// there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run_folder);

/// Records the evaluation return of a checkpoint's parameters.
void score_checkpoint(const std::filesystem::path& checkpoint, double evaluation_return);

/// A checkpoint as surplus() sees it.
struct ScoredCheckpoint {
  std::int64_t updates = 0;
  std::optional<double> evaluation_return = {};
};

/// Returns which checkpoints of a list by ascending updates to remove: all except the `keep` newest
/// and the `keep_best` with the greatest returns (the newer one wins a tie).
std::vector<bool> surplus(std::span<const ScoredCheckpoint> checkpoints, int keep, int keep_best);

/// Returns the complete checkpoints in a folder of checkpoints, by ascending updates. A checkpoint
/// whose manifest cannot be read has no return.
std::vector<ScoredCheckpoint> scored_checkpoints(const std::filesystem::path& checkpoints);

/// Removes the surplus() checkpoints, each manifest first, so that no partial checkpoint looks
/// complete.
void remove_surplus(const std::filesystem::path& checkpoints, int keep, int keep_best);

/// Renames a damaged checkpoint to `<updates>.damaged`, which no reader takes for a checkpoint.
/// Replaces an earlier folder of that name. Under its own name it would count as the newest one
/// when the run resumes from an older one, and remove_surplus() would remove new ones. Returns the
/// new path.
std::filesystem::path set_damaged_aside(const std::filesystem::path& checkpoint);

/// Returns the folders replay/shard-0, shard-1, ... of a checkpoint, in order. Throws if one is
/// missing.
std::vector<std::filesystem::path> saved_shards(const std::filesystem::path& replay);

} // namespace troupe::actors
