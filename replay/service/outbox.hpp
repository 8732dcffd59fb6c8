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

/// An answer of the shard's owner for the server's thread.
struct Answer {
  enum class Kind : std::uint8_t { accepted, refused_insertion, items, stats, info, done, refused };
  Kind kind = Kind::accepted;
  std::size_t table = 0; // whose answer it is
  std::string peer = {};
  std::uint64_t writer_id = 0;
  std::uint64_t number = 0; // sequence or request
  std::vector<Item> items = {};
  std::size_t part_bytes = 0; // of the messages that the items travel in
  TableStats stats = {};
  std::optional<TableConfig> config = {};
  std::string text = {}; // the reason of a refusal; of info: which requests wait
};

/// Takes answers from any thread; wakes the server's thread through a file descriptor. Reply
/// functions keep it beyond the server's end.
class Outbox {
public:
  Outbox(); // throws std::runtime_error if the process has no descriptor left
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void put(Answer answer); // dropped after close()
  void wake();
  std::vector<Answer> take(); // the server's thread
  void close();
  int wake_fd() const { return wake_fd_; }

private:
  std::mutex mutex_;
  std::vector<Answer> answers_;
  bool closed_ = false;
  int wake_fd_ = -1;
};

/// Calls back through the outbox once: with the answer, or, when all copies of the function that
/// holds it are gone without one, with a refusal. Any thread.
class Reply {
public:
  Reply(std::shared_ptr<Outbox> outbox, Answer refusal);
  ~Reply();
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  /// The answer with the refusal's address filled in, for the first caller only.
  void answer(Answer given);

private:
  std::shared_ptr<Outbox> outbox_;
  Answer refusal_;
  std::atomic<bool> answered_ = false;
};

} // namespace troupe::replay
