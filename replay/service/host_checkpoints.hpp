#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "replay/service/shard_host.hpp"
#include "replay/table/table_checkpoint.hpp"

namespace troupe::replay {

struct HostCheckpointOptions {
  std::filesystem::path folder;                                         // created if missing
  std::chrono::milliseconds period = std::chrono::milliseconds(60'000); // 0: only by write()
  int keep = 2; // number of newest checkpoints to keep
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

/// Returns the numbers of the checkpoints in a folder, newest (greatest) first. Throws StorageError
/// if it cannot be listed.
std::vector<std::uint64_t> checkpoints_in(const std::filesystem::path& folder);

/// Writes checkpoints of a host's tables while it serves them, to `folder`/<number>/<table>
/// (CheckpointWriter) with ascending numbers. A checkpoint is complete if it contains all tables;
/// until then its folder is called <number>.partial. The tables are captured one after the other,
/// each between two requests, and written on a separate thread. Unchanged files are links to the
/// previous checkpoint, except in every kWholeCheckpointPeriod-th one. Checkpoints with other
/// tables, more or fewer, are never removed.
///
///   HostCheckpoints checkpoints(tables, {.folder = "checkpoints"});
///   options.restore = [&](std::size_t table, Table& into) { checkpoints.restore(table, into); };
///   ShardHost host(context, tables, options);
///   const std::jthread writing = checkpoints.start(host); // ends before the host
class HostCheckpoints {
public:
  /// Finds the newest checkpoint that is complete and undamaged (every byte is verified), and logs
  /// what is wrong with newer ones. If none is complete, finds the newest undamaged one with some
  /// of the tables, and logs the others, which start empty. Throws StorageError if there are
  /// checkpoints but none can be used, if the folder cannot be used, or if another process uses it.
  HostCheckpoints(const std::vector<HostedTable>& tables, HostCheckpointOptions options);
  ~HostCheckpoints();
  HostCheckpoints(const HostCheckpoints&) = delete;
  HostCheckpoints& operator=(const HostCheckpoints&) = delete;

  /// Fills table number `table` of the list from that checkpoint, if it contains it. A different
  /// TableConfig is accepted and logged. Throws as Table::load() does.
  void restore(std::size_t table, Table& into) const;
  /// Returns the number of that checkpoint; 0 if there was none.
  std::uint64_t restored() const { return restored_; }

  /// Starts a thread that writes a checkpoint every period and logs failures. The returned thread
  /// must be destroyed before `host` and this object. With a period of 0 there is no thread.
  [[nodiscard]] std::jthread start(ShardHost& host);

  /// Writes a checkpoint now and returns its number. Throws StorageError, and then leaves no part
  /// of the checkpoint behind. May be called on any thread.
  std::uint64_t write(ShardHost& host);

private:
  explicit HostCheckpoints(HostCheckpointOptions options); // locks the folder
  void choose_restored();
  std::filesystem::path folder_of(std::uint64_t number) const;
  std::filesystem::path path(std::uint64_t number, std::size_t table) const;
  /// Returns the names of the folders of our tables that a checkpoint does not contain.
  std::vector<std::string> missing_in(std::uint64_t number) const;
  void remove_old();

  HostCheckpointOptions options_;
  int lock_ = -1;                  // descriptor of the locked folder
  std::vector<std::string> names_; // names of the tables' folders
  std::uint64_t restored_ = 0;
  std::mutex writing_;         // serializes write(); guards the next two members
  std::uint64_t previous_ = 0; // latest checkpoint of these tables; 0: none
  std::uint64_t newest_ = 0;   // greatest number in use, complete or not
  std::mutex mutex_;           // for the thread's sleep
  std::condition_variable_any wake_;
};

} // namespace troupe::replay
