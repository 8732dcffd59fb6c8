#include "experiments/dashboard/operators.hpp"

#include <stdexcept>
#include <utility>

namespace troupe::experiments::dashboard {
namespace {

constexpr std::chrono::milliseconds kFresh{900};
constexpr std::chrono::seconds kUnused{30};
constexpr std::chrono::seconds kOthersTime{2};

} // namespace

Operators::Operators(Connect connect, std::function<Clock::time_point()> now)
    : connect_(std::move(connect)), now_(std::move(now)) {}

std::shared_ptr<Operators::Slot> Operators::slot(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto now = now_();
  std::erase_if(slots_, [now](const auto& entry) { return now - entry.second->used > kUnused; });
  auto& found = slots_[id];
  if (!found) {
    found = std::make_shared<Slot>();
  }
  found->used = now;
  return found;
}

Operators::Told Operators::status(const WatchedRun& run) {
  const auto its = slot(run.id());
  const auto known = [&](bool only_fresh) -> std::pair<Told, bool> {
    const std::lock_guard lock(its->answer);
    return {its->told, !only_fresh || now_() - its->asked < kFresh};
  };
  if (auto [told, fresh] = known(true); fresh) {
    return told;
  }
  const std::unique_lock asking(its->connection, std::try_to_lock);
  if (!asking) {
    return known(false).first;
  }
  Told told;
  try {
    if (!its->one) {
      its->one = connect_(run.folder());
    }
    told.status = its->one->status();
    told.actions = its->one->actions();
  } catch (const std::exception& failure) {
    its->one.reset();
    told.problem = failure.what();
  }
  const std::lock_guard lock(its->answer);
  its->told = told;
  its->asked = now_();
  return told;
}

std::string Operators::act(const WatchedRun& run,
                           const std::function<std::string(RunOperator&)>& action) {
  const auto its = slot(run.id());
  const std::unique_lock asking(its->connection, kOthersTime);
  if (!asking) {
    throw std::invalid_argument(run.id() + ": the run is busy with another request; try again");
  }
  if (!its->one) {
    its->one = connect_(run.folder());
  }
  try {
    return action(*its->one);
  } catch (const std::invalid_argument&) { // the run refuses, but its head is reachable
    throw;
  } catch (const std::exception&) {
    its->one.reset();
    throw;
  }
}

} // namespace troupe::experiments::dashboard
