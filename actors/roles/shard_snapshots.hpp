#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "replay/table/table_checkpoint.hpp"

namespace troupe::actors {

/// The folder of a shard's snapshots, whose names are ascending numbers. An incarnation of the
/// shard that was declared dead may be only frozen, so each one takes the folder over when it
/// starts. From then on earlier incarnations add no snapshot, and what the new one finds is the
/// newest that there will be.
class ShardSnapshots {
public:
  /// Takes the folder over. Incarnation 0 belongs to a new run and empties it.
  ShardSnapshots(std::filesystem::path folder, std::uint64_t incarnation);

  /// The snapshots that were there, the newest first.
  const std::vector<std::filesystem::path>& found() const { return found_; }
  /// Returns the path of another snapshot.
  std::filesystem::path next();
  /// Writes a snapshot, linking unchanged files from `previous`. May be called on any thread.
  /// Throws replay::StorageError, and std::runtime_error if a later incarnation has taken over.
  void write(const replay::TableSnapshot& table, const std::filesystem::path& to,
             const std::filesystem::path& previous) const;
  /// Removes all snapshots except the newest two.
  void remove_old() const;

private:
  bool is_superseded() const;

  std::filesystem::path folder_;
  std::uint64_t incarnation_;
  std::int64_t number_; // of the newest
  std::vector<std::filesystem::path> found_;
};

} // namespace troupe::actors
