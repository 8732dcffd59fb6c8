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
  std::filesystem::path folder;                                         // made if missing
  std::chrono::milliseconds period = std::chrono::milliseconds(60'000); // 0: by write() alone
  int keep = 2;                                                         // of the newest
  CheckpointConfig files = {};
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

/// Checkpoints of a host's tables, one after another while it serves: `folder`/<number>/<table>
/// (CheckpointWriter), numbers ascend. A checkpoint is one if all tables are in it. Tables are
/// captured one after the other, each between two requests, and written on a thread of its own.
///
///   HostCheckpoints checkpoints(tables, {.folder = "checkpoints"});
///   options.restore = [&](std::size_t table, Table& into) { checkpoints.restore(table, into); };
///   ShardHost host(context, tables, options);
///   const std::jthread writing = checkpoints.start(host); // ends before the host
class HostCheckpoints {
public:
  /// Looks for the newest checkpoint of which every byte is right; what is wrong with newer ones is
  /// logged. Throws StorageError when the folder cannot be used, or another process uses it.
  HostCheckpoints(const std::vector<HostedTable>& tables, HostCheckpointOptions options);
  ~HostCheckpoints();
  HostCheckpoints(const HostCheckpoints&) = delete;
  HostCheckpoints& operator=(const HostCheckpoints&) = delete;

  /// Fills a table of that place in the list from that checkpoint, if there is one. Another
  /// TableConfig is fine and logged. Throws as Table::load() does.
  void restore(std::size_t table, Table& into) const;
  std::uint64_t restored() const { return restored_; } // its number; 0: there was none

  /// Writes one every period until the thread that it gives is destroyed, before `host` and this;
  /// what goes wrong is logged. With a period of 0 there is no thread.
  [[nodiscard]] std::jthread start(ShardHost& host);

  /// Writes one now and returns its number. Throws StorageError. Any thread.
  std::uint64_t write(ShardHost& host);

private:
  std::filesystem::path path(std::uint64_t number, std::size_t table) const;
  bool is_complete(std::uint64_t number) const;
  void remove_old();

  HostCheckpointOptions options_;
  int lock_ = -1;                  // on the folder
  std::vector<std::string> names_; // of folders
  std::uint64_t restored_ = 0;
  std::mutex writing_;         // one at a time; of the two below
  std::uint64_t previous_ = 0; // of these tables; 0: none
  std::uint64_t newest_ = 0;   // number in use, complete or not
  std::mutex mutex_;           // of the thread's sleep
  std::condition_variable_any wake_;
};

} // namespace troupe::replay
