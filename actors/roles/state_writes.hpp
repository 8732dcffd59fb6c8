#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "actors/protocol/messages.hpp"

namespace troupe::actors {

/// Writes an actor's snapshots and checkpoints on another thread, one at a time, in order. Belongs
/// to that actor: everything except the writing happens on the actor's thread, and the actor must
/// pass each message (written_atom, problem) to on_written().
class StateWrites {
public:
  struct Write {
    std::function<void()> write; // called on another thread; an exception is the problem
    /// Called with the problem, or "", and the time that writing took.
    std::function<void(const std::string& problem, std::chrono::steady_clock::duration took)> done;
    bool checkpoint = false; // otherwise a snapshot
  };

  explicit StateWrites(caf::local_actor* self) : self_(self) {}

  void add(Write write);
  /// Called before a checkpoint's state is captured. Throws std::runtime_error while another
  /// checkpoint is being written.
  void begin_checkpoint();
  bool is_writing(bool checkpoint) const;
  void on_written(const std::string& problem);
  /// Answers once the last checkpoint is written, or with Fault::failed and the reason.
  caf::result<done_atom> checkpoint_written();

private:
  void start();

  caf::local_actor* self_;
  std::deque<Write> writes_; // the first one is being written
  std::chrono::steady_clock::time_point began_;
  caf::error checkpoint_failure_;
  std::vector<caf::typed_response_promise<done_atom>> waiting_;
};

} // namespace troupe::actors
