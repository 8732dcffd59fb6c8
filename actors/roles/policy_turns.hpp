#pragma once

#include <cstdint>

namespace troupe::actors {

/// When environments may play on if the newest policy must play each sequence (Storage::
/// newest_policy): they play whole sequences, then wait until the learner publishes what it learned
/// from them. Decides only; the environment actor waits.
class PolicyTurns {
public:
  /// `sequence_steps`: 0 for other agents, who never wait. `sequences`: that the learner uses
  /// between two publications. `lanes`: environments of the whole run.
  PolicyTurns(std::int64_t sequence_steps, std::int64_t sequences, std::int64_t lanes)
      : sequence_steps_(sequence_steps), sequences_(sequences), lanes_(lanes) {}

  /// `steps`: of each environment so far.
  bool waits(std::int64_t steps) const {
    return sequence_steps_ > 0 && steps >= end_ && !may_begin_;
  }
  /// Called before a step that does not wait. True: sequences begin with this step. Together the
  /// environments of the run make at least as many as the learner uses until it publishes again.
  bool begins(std::int64_t steps) {
    if (sequence_steps_ == 0 || steps < end_)
      return false;
    may_begin_ = false;
    end_ = steps + sequence_steps_ * ((sequences_ + lanes_ - 1) / lanes_);
    return true;
  }

  void published() { may_begin_ = true; }
  /// The number of environments of the run has changed. The learner may lack sequences of
  /// environments that left, so waiting environments play on.
  void set_lanes(std::int64_t lanes) {
    lanes_ = lanes;
    may_begin_ = true;
  }

private:
  std::int64_t sequence_steps_;
  std::int64_t sequences_;
  std::int64_t lanes_;
  std::int64_t end_ = 0;   // of the current sequences, in steps of each environment
  bool may_begin_ = false; // parameters were published since they began
};

} // namespace troupe::actors
