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
  replay::ObjectAddress run; // where the run's folder is in the store
  replay::StoreOptions store;
  int keep = 2;      // newest checkpoints there
  int keep_best = 0; // besides, the ones of the local folder
};

/// Copies complete checkpoints of a run to an object store, on a thread of its own. One is copied
/// and one may wait: a newer one takes its place. Each copy is complete with its manifest, which
/// comes last; then older ones go. A failure is counted and told, and the next checkpoint is
/// copied. The functions do not wait for the store, except finish(); one thread calls them.
class CheckpointCopies {
public:
  CheckpointCopies(std::filesystem::path run_folder, CopyOptions options);
  /// Gives up what is under way; waits at most for the end of a request's current second.
  ~CheckpointCopies();
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  /// A complete checkpoint. Hard links to its files are kept until it is copied, so that it may be
  /// removed meanwhile; on a file system without links its removal makes the copy fail.
  void offer(const std::filesystem::path& checkpoint);
  /// The manifest of a checkpoint that was offered has changed.
  void offer_manifest(const std::filesystem::path& checkpoint);
  /// Waits until all is copied; at the deadline what is left counts as failed.
  void finish(std::chrono::seconds deadline);

  bool idle() const; // all is copied, or has failed
  std::int64_t failed() const;
  struct Message {
    std::string level, text;
  };
  /// What happened since the last call, also to the store's keys, for the log; the oldest are
  /// dropped above 100.
  std::vector<Message> messages();

private:
  struct Job {
    std::filesystem::path checkpoint; // <run>/checkpoints/<updates>
    std::filesystem::path links;      // to its files; or `checkpoint`
    bool manifest_only = false;
  };
  void work(const std::stop_token& stop);
  void copy(const Job& job);
  void remove_older(std::int64_t newest);
  Job linked(const std::filesystem::path& checkpoint) const;
  void drop(const Job& job) const;
  void tell(const std::string& level, const std::string& text); // with the lock

  const std::filesystem::path folder_;
  const CopyOptions options_;
  replay::ObjectStore store_;
  std::set<std::int64_t> copied_; // by this object; of the thread

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Job> waiting_, manifest_; // in this order
  bool busy_ = false;
  std::int64_t failed_ = 0;
  std::vector<Message> messages_;
  std::jthread thread_; // last: stops first
};

} // namespace troupe::actors
