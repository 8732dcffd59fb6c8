#pragma once

#include <cstdint>
#include <memory>

#include "actors/protocol/messages.pb.h"
#include "collectives/timeline.hpp"

namespace troupe::actors {

/// The spans of one actor's stages, recorded while the head asks for them. Otherwise a span costs
/// one load of a flag. answer() and note_update() on the actor's thread; any thread may add spans.
class SpanRecorder {
public:
  SpanRecorder();

  /// Where the actor and its helpers add their spans; outlives them.
  const std::shared_ptr<collectives::Timeline>& timeline() const { return timeline_; }

  /// Starts, stops or hands over, as ordered; tells the clock in any case.
  wire::SpansPart answer(const wire::SpansOrder& order);
  /// A learner has made an update: the recording ends after the ordered number of them.
  void note_update() {
    if (timeline_->recording())
      count_update();
  }

private:
  void count_update();

  std::shared_ptr<collectives::Timeline> timeline_;
  std::int64_t updates_left_ = 0; // 0: it records until it is stopped
};

/// The boot of this host's kernel, whose processes share a steady clock; "" if it is not known.
const std::string& boot_of_host();

} // namespace troupe::actors
