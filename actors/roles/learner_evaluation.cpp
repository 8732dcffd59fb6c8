#include "actors/roles/learner_evaluation.hpp"

#include <cstdint>
#include <stdexcept>

#include <ATen/core/Tensor.h>

#include "actors/protocol/messages.pb.h"
#include "learner/replicas/replica.hpp"

namespace troupe::actors {

wire::LearnerEvaluation evaluated(learner::Replica& replica, learner::ReplicaContext& context,
                                  bool with_pictures) {
  wire::LearnerEvaluation made;
  const auto metrics = replica.evaluate(context);
  made.mutable_metrics()->insert(metrics.begin(), metrics.end());
  if (!with_pictures)
    return made;
  for (const auto& [name, picture] : replica.pictures()) {
    if (picture.scalar_type() != at::kByte || picture.dim() != 3 || picture.size(0) != 3)
      throw std::runtime_error("the replica's picture \"" + name
                               + "\" is not uint8 [3, height, width]");
    auto& one = *made.add_pictures();
    one.set_name(name);
    one.set_height(static_cast<std::int32_t>(picture.size(1)));
    one.set_width(static_cast<std::int32_t>(picture.size(2)));
    const auto rows = picture.permute({1, 2, 0}).contiguous();
    one.set_rgb(rows.const_data_ptr(), rows.nbytes());
  }
  return made;
}

} // namespace troupe::actors
