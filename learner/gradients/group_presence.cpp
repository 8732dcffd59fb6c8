#include "learner/gradients/group_presence.hpp"

#include <algorithm>
#include <cstdint>

#include <ATen/ops/zeros.h>

#include "collectives/communicator.hpp"

namespace troupe::learner {

GroupPresence presence_in_group(collectives::Communicator& communicator,
                                const std::vector<bool>& mine, at::Device device) {
  const auto count = static_cast<std::int64_t>(mine.size());
  auto flags = at::zeros({count + 1}, at::kLong); // the last one: has any gradient
  auto* values = flags.mutable_data_ptr<std::int64_t>();
  std::copy(mine.begin(), mine.end(), values);
  values[count] = std::find(mine.begin(), mine.end(), true) != mine.end() ? 1 : 0;
  auto there = flags.to(device);
  communicator.all_reduce(there, collectives::ReduceOp::sum);
  const auto sums = there.cpu();
  const auto* replicas = sums.const_data_ptr<std::int64_t>();
  GroupPresence made;
  for (std::size_t i = 0; i < mine.size(); ++i)
    made.anywhere.push_back(replicas[i] > 0);
  if (replicas[count] > 0)
    made.factor = static_cast<double>(communicator.size()) / static_cast<double>(replicas[count]);
  return made;
}

} // namespace troupe::learner
