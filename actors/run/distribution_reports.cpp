#include "actors/run/distribution_reports.hpp"

#include <bit>

#include "actors/protocol/histogram_wire.hpp"

namespace troupe::actors {

namespace {
constexpr std::size_t kMostActors = 64; // environment actors
constexpr std::size_t kMostNames = 512; // in all answers together
constexpr std::int64_t kAllOf = 64;     // number of first calls that all count
constexpr std::chrono::seconds kAnswerDeadline{60};
} // namespace

bool DistributionReports::counts(std::int64_t call) {
  if (call < kAllOf)
    return true;
  const auto stride = std::bit_floor(static_cast<std::uint64_t>(call / (kAllOf / 2)));
  return static_cast<std::uint64_t>(call) % stride == 0;
}

void DistributionReports::begin(const Progress& progress) {
  if (!context_.callbacks.distributions || missing_ > 0 || !counts(calls_++))
    return;
  made_ = {.environment_steps = progress.environment_steps,
           .updates = progress.updates,
           .histograms = {}};
  requests_.clear();
  std::vector<caf::actor> asked;
  if (actors_.is_up({Role::learner, 0}))
    asked.push_back(actors_.at({Role::learner, 0}));
  for (const auto& environment : actors_.all(Role::environment))
    if (asked.size() <= kMostActors)
      asked.push_back(environment);
  missing_ = asked.size();
  for (const auto& who : asked)
    ask(who);
}

void DistributionReports::ask(const caf::actor& who) {
  requests_.push_back(actors_.request<ProtoBytes>(
      who, kAnswerDeadline,
      [this](const ProtoBytes& encoded, const caf::error& error) {
        if (!error)
          add(encoded);
        if (--missing_ == 0)
          finish();
      },
      measure_atom_v));
}

void DistributionReports::add(const ProtoBytes& encoded) {
  try {
    const auto told = decode<wire::Distributions>(encoded);
    for (const auto& [name, one] : told.histograms()) {
      const learner::Histogram histogram = histogram_of(one);
      const auto at = made_.histograms.find(name);
      if (at != made_.histograms.end())
        at->second.add(histogram);
      else if (made_.histograms.size() < kMostNames)
        made_.histograms.emplace(name, histogram);
    }
  } catch (const std::exception& e) { // curves lack these histograms, and the run continues
    context_.log("warning", std::string("an actor's histograms are left out: ") + e.what());
  }
}

void DistributionReports::finish() {
  std::erase_if(made_.histograms, [](const auto& entry) { return entry.second.count == 0; });
  context_.callbacks.distributions(made_);
}

} // namespace troupe::actors
