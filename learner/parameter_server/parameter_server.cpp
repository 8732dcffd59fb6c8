#include "learner/parameter_server/parameter_server.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <torch/optim/optimizer.h>

#include "learner/parameter_server/parameter_server_worker.hpp"

namespace troupe::learner {
namespace {

bool finite_everywhere(const at::Tensor& tensor) {
  // If the sum is finite, so are its terms. If not, it may merely have overflowed.
  return std::isfinite(tensor.sum().item<double>()) || at::isfinite(tensor).all().item<bool>();
}

double rate_factor(StalenessRate rate, std::int64_t staleness) {
  switch (rate) {
  case StalenessRate::constant:
    return 1;
  case StalenessRate::inverse:
    return 1.0 / static_cast<double>(std::max<std::int64_t>(1, staleness));
  case StalenessRate::inverse_plus_one:
    return 1.0 / static_cast<double>(1 + staleness);
  }
  return 1;
}

} // namespace

ParameterServerOptions central_storage(int workers) {
  return {.synchrony = Synchrony::synchronous, .workers = workers};
}

ParameterServerOptions with_backup_workers(int workers, int backup_workers) {
  return {
      .synchrony = Synchrony::synchronous, .workers = workers, .backup_workers = backup_workers};
}

void check(const ParameterServerOptions& options) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument(what); };
  if (options.workers < 1 || options.workers > 65536)
    refuse("workers " + std::to_string(options.workers) + " must be from 1 to 65536");
  if (options.backup_workers < 0 || options.backup_workers >= options.workers)
    refuse("backup_workers " + std::to_string(options.backup_workers)
           + " must be at least 0 and less than workers, " + std::to_string(options.workers));
  const bool synchronous = options.synchrony == Synchrony::synchronous;
  if (!synchronous && options.backup_workers > 0)
    refuse("backup_workers need a synchronous strategy; an asynchronous one waits for no worker");
  if (synchronous
      && (options.max_staleness || options.max_lead
          || options.staleness_rate != StalenessRate::constant))
    refuse("max_staleness, max_lead and staleness_rate need the asynchronous strategy; "
           "synchronous gradients are never stale");
  if (options.max_staleness.value_or(0) < 0)
    refuse("max_staleness " + std::to_string(*options.max_staleness) + " must be at least 0");
  if (options.max_lead.value_or(1) < 1)
    refuse("max_lead " + std::to_string(*options.max_lead) + " must be at least 1");
  if (options.worker_timeout.count() <= 0 || options.join_timeout.count() <= 0)
    refuse("worker_timeout and join_timeout must be positive");
}

ParameterServer::ParameterServer(const ParameterServerOptions& options, Time started,
                                 OptimizerMaker maker)
    : options_((check(options), options)), make_(std::move(maker)), started_(started) {
  for (int i = 0; i < options_.workers; ++i)
    workers_.push_back(std::make_unique<Worker>());
}

ParameterServer::~ParameterServer() = default;

void ParameterServer::make_slices(const ServedSlice& slice) {
  slice_ = slice;
  pieces_.clear();
  ParameterGroups groups(slice.recipe.groups.size());
  std::int64_t begin = 0;
  for (const Segment& segment : slice.segments) {
    if (segment.count < 1 || segment.group < 0
        || static_cast<std::size_t>(segment.group) >= groups.size())
      throw std::invalid_argument("a segment of a parameter server has "
                                  + std::to_string(segment.count) + " elements in param group "
                                  + std::to_string(segment.group) + " of "
                                  + std::to_string(groups.size()));
    pieces_.push_back(parameters_.narrow(0, begin, segment.count));
    groups[static_cast<std::size_t>(segment.group)].push_back(pieces_.back());
    begin += segment.count;
  }
  optimizer_ = make_(slice.recipe, groups);
  rates_ = learning_rates(*optimizer_);
}

void ParameterServer::begin(const ServedSlice& slice, const at::Tensor& parameters,
                            std::int64_t version) {
  if (has_begun())
    throw std::invalid_argument("the parameter server already has its parameters");
  const std::int64_t elements = elements_of(slice.segments);
  if (slice.segments.empty() || parameters.dim() != 1 || parameters.numel() != elements
      || parameters.scalar_type() != slice.type)
    throw std::invalid_argument(
        "parameters " + c10::str(parameters.scalar_type(), parameters.sizes()) + " for a slice of "
        + c10::str(slice.type) + "[" + std::to_string(elements) + "]");
  if (!finite_everywhere(parameters))
    throw std::invalid_argument("the first parameters are not finite; look at how the network is "
                                "initialised");
  parameters_ = parameters.clone();
  make_slices(slice);
  version_ = version;
}

void ParameterServer::check_same(const ServedSlice& slice) const {
  if (slice.type != slice_.type || slice.segments != slice_.segments)
    throw std::invalid_argument(
        "this worker has other parameters (" + std::to_string(elements_of(slice.segments))
        + " elements of " + c10::str(slice.type) + " here) than the parameter server ("
        + std::to_string(elements_of(slice_.segments)) + " of " + c10::str(slice_.type)
        + "); build the same network on all replicas, with as many servers");
  if (slice.recipe.name != slice_.recipe.name)
    throw std::invalid_argument("this worker has optimizer " + slice.recipe.name
                                + ", the parameter server " + slice_.recipe.name
                                + "; use the same on all replicas");
}

ParameterServer::Worker& ParameterServer::worker_of(int worker) const {
  return *workers_.at(static_cast<std::size_t>(worker));
}

std::string ParameterServer::problem_of(const Push& push) const {
  const auto whose = "the gradient of worker " + std::to_string(push.worker) + " at its step "
                     + std::to_string(push.step);
  if (push.step < 1 || push.version < 0)
    return whose + " is on version " + std::to_string(push.version)
           + "; steps count from 1, versions from 0";
  const bool brings_any = !push.present.empty();
  if (brings_any
      && (push.gradient.dim() != 1 || push.gradient.numel() != parameters_.numel()
          || push.gradient.scalar_type() != slice_.type || push.present.size() != pieces_.size()))
    return whose + " is " + c10::str(push.gradient.scalar_type(), push.gradient.sizes())
           + "; the server holds " + c10::str(slice_.type, parameters_.sizes());
  if (!push.learning_rates.empty() && push.learning_rates.size() != rates_.size())
    return whose + " comes with " + std::to_string(push.learning_rates.size())
           + " learning rates for " + std::to_string(rates_.size()) + " param groups";
  for (const double rate : push.learning_rates)
    if (!std::isfinite(rate))
      return whose + " comes with a learning rate that is not finite";
  if (brings_any && !finite_everywhere(push.gradient))
    return whose
           + " is not finite; it was not applied. Look at that worker's loss and batch, or "
             "lower the learning rate";
  return "";
}

PushAnswer ParameterServer::push(const Push& push, Time now) {
  if (!has_begun() || !heartbeat(push.worker, push.session, now))
    return {.outcome = Outcome::unknown,
            .why = "worker " + std::to_string(push.worker) + " has yet to join"};
  if (std::string why = problem_of(push); !why.empty()) {
    ++counters_.refused;
    return {.outcome = Outcome::refused, .why = std::move(why)};
  }
  Worker& worker = worker_of(push.worker);
  if (const auto before = answer_to(push.worker, push.step)) {
    ++counters_.duplicates;
    return *before;
  }
  worker.presence = Worker::Presence::here;
  worker.advance(push.step); // by several if a restarted server has missed some
  worker.last_answer = decide(worker, push);
  return worker.last_answer;
}

std::optional<PushAnswer> ParameterServer::answer_to(int worker, std::int64_t step) const {
  const Worker& state = worker_of(worker);
  if (step > state.last_step)
    return std::nullopt;
  return step == state.last_step ? state.last_answer : PushAnswer{.outcome = Outcome::dropped};
}

PushAnswer ParameterServer::decide(Worker& worker, const Push& push) {
  worker.has_version = push.version;
  const bool synchronous = options_.synchrony == Synchrony::synchronous;
  if (push.version > version_) {
    ++counters_.rewound;
    if (!synchronous)
      return {.outcome = Outcome::rewound,
              .why = "the server has gone back from version " + std::to_string(push.version)
                     + " to " + std::to_string(version_)};
    // A gradient on parameters newer than those of a restarted server counts, too, and the numbers
    // continue from it. Workers then stay in step at all servers, and no one waits for a version
    // that existed before.
    version_ = push.version;
  }
  return synchronous ? count(worker, push) : decide_asynchronous(push);
}

PushAnswer ParameterServer::decide_asynchronous(const Push& push) {
  const std::int64_t staleness = version_ - push.version;
  if (push.present.empty()) {
    ++counters_.dropped;
    return {.outcome = Outcome::dropped, .staleness = staleness, .why = "it brings no gradient"};
  }
  if (options_.max_staleness && staleness > *options_.max_staleness) {
    ++counters_.dropped;
    return {.outcome = Outcome::dropped,
            .staleness = staleness,
            .why = "the gradient is " + std::to_string(staleness) + " versions old, "
                   + std::to_string(*options_.max_staleness) + " are allowed"};
  }
  const double scale = rate_factor(options_.staleness_rate, staleness);
  apply(push.gradient, push.present, push.learning_rates, scale);
  ++counters_.applied;
  counters_.rate_scale_sum += scale;
  counters_.staleness_sum += staleness;
  counters_.staleness_most = std::max(counters_.staleness_most, staleness);
  return {.outcome = Outcome::applied, .staleness = staleness, .rate_scale = scale};
}

PushAnswer ParameterServer::count(Worker& worker, const Push& push) {
  const std::int64_t staleness = version_ - push.version;
  // If no worker rests, the others will push again, and this gradient may count then.
  const bool others_rest = options_.backup_workers > 0
                           && std::any_of(workers_.begin(), workers_.end(), [](const auto& other) {
                                return other->presence == Worker::Presence::resting;
                              });
  if (staleness > 0 || cannot_count(worker, others_rest)) {
    ++counters_.dropped;
    return {.outcome = Outcome::dropped,
            .staleness = staleness,
            .why = "version " + std::to_string(push.version + 1)
                   + (staleness > 0 ? " was made without it"
                                    : " is not made: the others have made their steps")};
  }
  if (worker.counted && !worker.present.empty()) // its earlier gradient was never used
    ++counters_.dropped;
  if (push.present.empty())
    ++counters_.dropped;
  else if (!worker.gradient.defined())
    worker.gradient = push.gradient.clone();
  else
    worker.gradient.copy_(push.gradient);
  worker.present = push.present;
  worker.rates = push.learning_rates;
  worker.counted = true;
  const std::int64_t before = version_;
  make_version_if_complete();
  return {.outcome = version_ > before ? Outcome::applied : Outcome::counted};
}

int ParameterServer::counted() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& w) { return w->counted; }));
}

/// Returns whether the worker already has the version that is being made, from an earlier server
/// that stopped before it reached the other workers. Such a worker pushes no more gradients for it.
bool ParameterServer::may_proceed(const Worker& worker) const {
  return !worker.counted && worker.has_version > version_;
}

int ParameterServer::required() const {
  const auto here = std::count_if(workers_.begin(), workers_.end(), [this](const auto& worker) {
    return worker->counted || (worker->presence != Worker::Presence::gone && !may_proceed(*worker));
  });
  return std::max(1, std::min(options_.workers - options_.backup_workers, static_cast<int>(here)));
}

/// Returns whether too few other workers may still complete a version with this worker's gradient.
/// Suspended workers that have made the step do not. With `by_steps`, no worker that has made it
/// does: with backup workers, it may be waiting for this one at another server.
bool ParameterServer::cannot_count(const Worker& worker, bool by_steps) const {
  const auto possible = std::count_if(workers_.begin(), workers_.end(), [&](const auto& other) {
    if (other->counted || other.get() == &worker)
      return true;
    if (other->presence == Worker::Presence::gone || may_proceed(*other))
      return false;
    return (other->waited_for() && !by_steps) || other->clock < worker.clock;
  });
  return static_cast<int>(possible) < required();
}

void ParameterServer::make_version_if_complete() {
  if (options_.synchrony != Synchrony::synchronous || counted() == 0 || counted() < required())
    return;
  const at::NoGradGuard guard;
  at::Tensor sum;
  std::vector<bool> present(pieces_.size());
  const std::vector<double>* rates = nullptr;
  std::int64_t count = 0;
  for (const auto& worker : workers_) {
    if (!std::exchange(worker->counted, false) || worker->present.empty())
      continue;
    ++count;
    if (!sum.defined())
      sum = worker->gradient; // the worker's own buffer, which its next gradient overwrites
    else
      sum.add_(worker->gradient);
    for (std::size_t i = 0; i < present.size(); ++i)
      present[i] = present[i] || worker->present[i];
    if (!rates)
      rates = &worker->rates;
  }
  counters_.applied += count;
  counters_.rate_scale_sum += static_cast<double>(count);
  if (count == 0) { // no worker contributed a gradient
    ++version_;
    return;
  }
  if (count > 1)
    sum.div_(static_cast<double>(count));
  apply(sum, present, *rates, 1);
}

void ParameterServer::apply(const at::Tensor& gradient, const std::vector<bool>& present,
                            const std::vector<double>& rates, double factor) {
  if (!rates.empty())
    rates_ = rates;
  std::vector<double> scaled = rates_;
  for (double& rate : scaled)
    rate *= factor;
  set_learning_rates(*optimizer_, scaled);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const std::int64_t count = slice_.segments[i].count;
    if (present[i])
      pieces_[i].mutable_grad() = gradient.narrow(0, begin, count);
    begin += count;
  }
  optimizer_->step();
  for (auto& piece : pieces_)
    piece.mutable_grad().reset();
  ++version_;
}

std::string ParameterServer::who_is_missing() const {
  std::string names;
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i]->presence != Worker::Presence::gone && !workers_[i]->counted
        && !may_proceed(*workers_[i]))
      names += (names.empty() ? "" : ", ") + std::to_string(i)
               + (workers_[i]->waited_for() ? "" : " (which rests)");
  return names;
}

PullAnswer ParameterServer::pull(int worker, std::int64_t step) const {
  if (!has_begun())
    return {.why = "the server has no parameters yet; worker 0 provides them"};
  const Worker& state = worker_of(worker);
  const auto answer = step > 0 ? answer_to(worker, step) : std::nullopt;
  const bool waits = answer && answer->outcome == Outcome::counted && state.counted;
  if (waits && !cannot_count(state, options_.backup_workers > 0))
    return {.why = "worker " + std::to_string(worker) + " waits for version "
                   + std::to_string(version_ + 1) + ": " + std::to_string(counted()) + " of "
                   + std::to_string(required()) + " gradients are here; those of workers "
                   + who_is_missing() + " are not"};
  if (!options_.max_lead)
    return {.ready = true};
  const std::int64_t clock = state.clock;
  for (std::size_t i = 0; i < workers_.size(); ++i)
    if (workers_[i]->waited_for() && clock - workers_[i]->clock > *options_.max_lead)
      return {.why = "worker " + std::to_string(worker) + " is "
                     + std::to_string(clock - workers_[i]->clock) + " steps ahead of worker "
                     + std::to_string(i) + ", " + std::to_string(*options_.max_lead)
                     + " are allowed: it waits"};
  return {.ready = true};
}

} // namespace troupe::learner
