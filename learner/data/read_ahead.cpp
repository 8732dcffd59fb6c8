#include "learner/data/read_ahead.hpp"

#include <map>
#include <mutex>
#include <utility>

namespace troupe::learner {
namespace {

/// The order of each epoch, made once and shared by all threads that need it.
class Orders {
public:
  explicit Orders(const EpochPlan& plan) : plan_(plan) {}

  at::Tensor of(std::int64_t epoch) {
    const std::lock_guard lock(mutex_);
    const auto found = orders_.find(epoch);
    if (found != orders_.end())
      return found->second;
    if (orders_.size() == 2) // threads only need the end of one epoch and the beginning of the next
      orders_.erase(orders_.begin());
    return orders_[epoch] = plan_.order(epoch);
  }

private:
  const EpochPlan plan_;
  std::mutex mutex_;
  std::map<std::int64_t, at::Tensor> orders_;
};

} // namespace

std::unique_ptr<Prefetcher> read_ahead(std::shared_ptr<const Dataset> dataset,
                                       const EpochPlan& plan, std::int64_t first, std::int64_t end,
                                       const PrefetchOptions& options) {
  plan.check();
  const auto steps = plan.steps_per_epoch();
  auto make = [dataset = std::move(dataset), plan, steps,
               orders = std::make_shared<Orders>(plan)](std::int64_t step) {
    const auto epoch = step / steps;
    return dataset->rows(plan.part(orders->of(epoch), step % steps), epoch);
  };
  return std::make_unique<Prefetcher>(first, end, std::move(make), options);
}

} // namespace troupe::learner
