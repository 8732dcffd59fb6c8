#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "replay/objects/object_store.hpp"

namespace troupe::actors {

struct CopyOptions {
  replay::ObjectAddress run; // location of the run's folder in the store
  replay::StoreOptions store;
  int keep = 2;      // newest checkpoints to keep in the store
  int keep_best = 0; // number of best checkpoints in the local folder, which the store keeps too
};

/// Copies a run's complete checkpoints to an object store on a separate thread. One checkpoint is
/// copied while at most one waits; a newer checkpoint replaces the waiting one. A copy is complete
/// with its manifest, which is copied last; then older copies are removed. A failure is counted and
/// logged, and the next checkpoint is copied. No function except finish() waits for the store; one
/// thread calls them.
class CheckpointCopies {
public:
  CheckpointCopies(std::filesystem::path run_folder, CopyOptions options);
  /// Cancels the copy in progress. Waits at most for the end of a request's current second.
  ~CheckpointCopies();
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  /// Queues a complete checkpoint. Hard links to its files are kept until it is copied, so that it
  /// may be removed meanwhile. On a file system without links, removing it makes the copy fail.
  void offer(const std::filesystem::path& checkpoint);
  /// Copies the manifest of a checkpoint again, after it has changed.
  void offer_manifest(const std::filesystem::path& checkpoint);
  /// Waits until everything is copied. Whatever is left at the deadline counts as failed.
  void finish(std::chrono::seconds deadline);

  bool idle() const; // everything is copied or has failed
  std::int64_t failed() const;
  struct Message {
    std::string level, text;
  };
  /// Returns log messages since the last call, including those about the store's keys. Above 100
  /// the oldest are dropped.
  std::vector<Message> messages();

private:
  struct Job {
    std::filesystem::path checkpoint; // <run>/checkpoints/<updates>
    std::filesystem::path links;      // folder of links to its files, or `checkpoint` itself
    bool manifest_only = false;
  };
  void work(const std::stop_token& stop);
  void copy(const Job& job);
  void remove_older(std::int64_t newest);
  Job linked(const std::filesystem::path& checkpoint); // call it with the lock held
  void drop(const Job& job) const;
  void tell(const std::string& level, const std::string& text); // call it with the lock held

  const std::filesystem::path folder_;
  const CopyOptions options_;
  replay::ObjectStore store_;
  std::set<std::int64_t> copied_; // by this object; used only by the thread

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Job> waiting_, manifest_; // processed in this order
  bool busy_ = false;
  std::uint64_t links_made_ = 0; // so that a checkpoint of the same number gets another folder
  std::int64_t failed_ = 0;
  std::vector<Message> messages_;
  std::jthread thread_; // last: stops first
};

} // namespace troupe::actors
