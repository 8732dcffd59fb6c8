#pragma once

#include <cstdint>
#include <utility>

namespace troupe::actors {

/// Decides when environments may step if the newest policy must play each sequence
/// (Storage::newest_policy): they play whole sequences, then wait until the learner publishes what
/// it learned from them. Only decides; the environment actor does the waiting.
class PolicyTurns {
public:
  /// `sequence_steps`: 0 for other agents, which never wait. `sequences`: number that the learner
  /// uses between two publications. `lanes`: environments of the whole run.
  PolicyTurns(std::int64_t sequence_steps, std::int64_t sequences, std::int64_t lanes)
      : sequence_steps_(sequence_steps), sequences_(sequences), lanes_(lanes) {}

  /// Whether environments must wait after `steps` steps each.
  bool waits(std::int64_t steps) const {
    return sequence_steps_ > 0 && steps >= end_ && !may_begin_;
  }
  /// Called before a step that need not wait. Returns true if sequences begin with this step.
  /// Together the environments of the run make at least as many as the learner uses before it
  /// publishes again.
  bool begins(std::int64_t steps) {
    if (std::exchange(restored_, false) && steps < end_)
      may_begin_ = false; // the first parameters after a resumption are not an update
    if (sequence_steps_ == 0 || steps < end_)
      return false;
    may_begin_ = false;
    end_ = steps + sequence_steps_ * ((sequences_ + lanes_ - 1) / lanes_);
    return true;
  }

  void published() { may_begin_ = true; }

  struct Saved {
    std::int64_t end = 0;
    std::int64_t lanes = 0;
  };
  Saved saved() const { return {end_, lanes_}; }
  /// Continues the sequences at which saved() was called, if the run has the same number of
  /// environments as then.
  void restore(const Saved& before) {
    if (before.lanes != lanes_)
      return;
    end_ = before.end;
    restored_ = true;
  }
  /// Sets a new number of environments of the run. Environments that left may have taken sequences
  /// with them that the learner needs, so waiting environments continue.
  void set_lanes(std::int64_t lanes) {
    lanes_ = lanes;
    may_begin_ = true;
  }

private:
  std::int64_t sequence_steps_;
  std::int64_t sequences_;
  std::int64_t lanes_;
  std::int64_t end_ = 0;   // step of each environment at which the current sequences end
  bool may_begin_ = false; // parameters were published since the current sequences began
  bool restored_ = false;  // until the first step
};

} // namespace troupe::actors
