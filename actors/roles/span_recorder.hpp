#pragma once

#include <cstdint>
#include <memory>

#include "actors/protocol/messages.pb.h"
#include "collectives/timeline.hpp"

namespace troupe::actors {

/// Records the spans of one actor's stages while the head requests them. Otherwise a span costs one
/// load of a flag. answer() and note_update() belong to the actor's thread; any thread may add
/// spans.
class SpanRecorder {
public:
  SpanRecorder();

  /// Where the actor and its helpers add their spans. Outlives them.
  const std::shared_ptr<collectives::Timeline>& timeline() const { return timeline_; }

  /// Starts or stops recording or returns the spans, as `order` says. The answer always has the
  /// time of this process's clock.
  wire::SpansPart answer(const wire::SpansOrder& order);
  /// Notes a learner's update: recording stops after the ordered number of updates.
  void note_update() {
    if (timeline_->recording())
      count_update();
  }

private:
  void count_update();

  std::shared_ptr<collectives::Timeline> timeline_;
  std::int64_t updates_left_ = 0; // 0: record until stopped
};

/// Identifies the boot of this host's kernel, whose processes share a steady clock; "" if unknown.
const std::string& boot_of_host();

} // namespace troupe::actors
