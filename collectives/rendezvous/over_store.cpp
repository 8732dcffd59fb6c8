#include "collectives/rendezvous/over_store.hpp"

#include <map>
#include <mutex>

namespace troupe::collectives {

StoreFactory threads_over_store() {
  struct Groups {
    std::mutex mutex;
    std::int64_t next = 0;
    // By group: communicators that other ranks' threads have not taken yet.
    std::map<std::string, std::vector<std::unique_ptr<Communicator>>> waiting;
  };
  const auto groups = std::make_shared<Groups>();
  return [groups](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                  const CommunicatorOptions& options) {
    const std::lock_guard lock(groups->mutex);
    // The store names the group; the first rank to arrive creates it.
    const auto name = store->compareSet("threads", "", std::to_string(groups->next++));
    auto& group = groups->waiting[name];
    if (group.empty())
      group = make_thread_communicators(size, options);
    if (rank < 0 || static_cast<std::size_t>(rank) >= group.size()
        || !group[static_cast<std::size_t>(rank)])
      throw std::runtime_error("rank " + std::to_string(rank)
                               + " of this group of threads is taken or out of range");
    return std::move(group[static_cast<std::size_t>(rank)]);
  };
}

} // namespace troupe::collectives
