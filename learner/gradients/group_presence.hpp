#pragma once

#include <vector>

#include <c10/core/Device.h>

namespace troupe::collectives {
class Communicator;
}

namespace troupe::learner {

/// Which gradients a group of replicas has. A parameter without a gradient on some replicas counts
/// as zero there; a replica without any gradient does not count.
struct GroupPresence {
  std::vector<bool> anywhere; // [parameter], whether any replica has a gradient
  double factor = 1;          // the number of replicas divided by that of replicas that count
};

/// A collective of the group: all replicas must call it. `mine`: [parameter], whether this replica
/// has a gradient. `device`: a device that the group's network can reach. Throws CollectiveError.
GroupPresence presence_in_group(collectives::Communicator& communicator,
                                const std::vector<bool>& mine, at::Device device);

} // namespace troupe::learner
