#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "replay/chunks/insertion.hpp"
#include "replay/table/table.hpp"

namespace troupe::replay {

/// An answer from the shard's owner to the server's thread.
struct Answer {
  enum class Kind : std::uint8_t { accepted, refused_insertion, items, stats, info, done, refused };
  Kind kind = Kind::accepted;
  std::size_t table = 0; // the table that it comes from
  std::string peer = {};
  std::uint64_t writer_id = 0;
  std::uint64_t number = 0; // number of the insertion or request
  std::vector<Item> items = {};
  std::size_t part_bytes = 0; // size of the messages in which the items are sent
  TableStats stats = {};
  std::optional<TableConfig> config = {};
  std::string text = {}; // the reason for a refusal; for info: which requests wait
};

/// Accepts answers from any thread and wakes the server's thread through a file descriptor. Reply
/// functions may keep it alive after the server's end.
class Outbox {
public:
  Outbox(); // throws std::runtime_error if the process has no descriptor left
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void put(Answer answer); // dropped after close()
  void wake();
  std::vector<Answer> take(); // called by the server's thread
  void close();
  int wake_fd() const { return wake_fd_; }

private:
  std::mutex mutex_;
  std::vector<Answer> answers_;
  bool closed_ = false;
  int wake_fd_ = -1;
};

/// Puts exactly one answer into the outbox: the one passed to answer() or, if this is destroyed
/// without one, the refusal. Thread-safe.
class Reply {
public:
  Reply(std::shared_ptr<Outbox> outbox, Answer refusal);
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  /// Sends `given`, addressed as the refusal is. Only the first call has an effect.
  void answer(Answer given);

private:
  std::shared_ptr<Outbox> outbox_;
  Answer refusal_;
  std::atomic<bool> answered_ = false;
};

} // namespace troupe::replay
