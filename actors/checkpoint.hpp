#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/messages.pb.h"

namespace troupe::actors {

/// Checkpoints of a run as files: <run>/checkpoints/<updates>/, complete once they have that name.
/// No actor, thread or clock; everything waits for the disk. Throws std::runtime_error (a
/// std::system_error where the system refuses) naming the file and the reason.

/// Lists what lies in `partial` in the manifest, with sizes and checksums, writes it, sealed, and
/// gives the folder its name; before that everything is on the disk. A checkpoint of the same name
/// stays until this one takes its place. Whoever is killed at any moment leaves either.
void commit_checkpoint(const std::filesystem::path& partial, const std::filesystem::path& complete,
                       wire::Manifest manifest);

/// Reads and checks a checkpoint's manifest: its own bytes, version, and every file there with its
/// size.
wire::Manifest read_manifest(const std::filesystem::path& checkpoint);

/// The complete checkpoint of a run's folder with the most updates; empty when there is none.
std::filesystem::path latest_checkpoint(const std::filesystem::path& run_folder);

/// Writes down the return that an evaluation of these very parameters had.
void score_checkpoint(const std::filesystem::path& checkpoint, double evaluation_return);

/// One of several, for surplus().
struct ScoredCheckpoint {
  std::int64_t updates = 0;
  std::optional<double> evaluation_return = {};
};

/// Those that go, of checkpoints by ascending updates: all but the `keep` newest and the
/// `keep_best` of the greatest returns (of equal ones the newer).
std::vector<bool> surplus(std::span<const ScoredCheckpoint> checkpoints, int keep, int keep_best);

/// The complete ones below a folder of checkpoints, by ascending updates. One whose manifest cannot
/// be read has no return.
std::vector<ScoredCheckpoint> scored_checkpoints(const std::filesystem::path& checkpoints);

/// Removes surplus(); each loses its manifest first, so that none is ever half there.
void remove_surplus(const std::filesystem::path& checkpoints, int keep, int keep_best);

/// Folders replay/shard-0, shard-1, ... of a checkpoint, in order; throws when one is missing.
std::vector<std::filesystem::path> saved_shards(const std::filesystem::path& replay);

} // namespace troupe::actors
