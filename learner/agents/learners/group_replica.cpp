#include "learner/agents/learners/group_replica.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

namespace troupe::learner {

void GroupReplica::build(ReplicaContext& context) {
  at::NoGradGuard no_gradient;
  begin(context, setting_.precision);
  at::Generator generator = at::detail::createCPUGenerator(context.seed());
  group_.build(context, initial(generator).to(options()),
               {.learning_rate = setting_.learning_rate,
                .gradient_norm = setting_.gradient_norm,
                .adam_epsilon = setting_.adam_epsilon});
  leaves_ = leaves_of(group_.layout(), group_.flat(), group_.gradient());
}

} // namespace troupe::learner
