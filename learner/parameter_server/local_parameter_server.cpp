#include "learner/parameter_server/local_parameter_server.hpp"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace troupe::learner {
namespace {
using Clock = std::chrono::steady_clock;
} // namespace

/// A server and its lock.
struct LocalParameterServer::Served {
  Served(const ParameterServerOptions& options, const OptimizerMaker& maker)
      : server(options, Clock::now(), maker) {}
  std::mutex mutex;
  std::condition_variable changed; // a version was made, a worker left, or abort()
  ParameterServer server;
  std::uint64_t sessions = 0; // number of sessions issued
  std::optional<std::string> aborted;
};

struct LocalParameterServer::State {
  Served& served(int optimizer) {
    const std::scoped_lock lock(mutex);
    auto& made = servers[optimizer];
    if (!made) {
      made = std::make_unique<Served>(options, maker);
      made->aborted = aborted;
    }
    return *made;
  }

  ParameterServerOptions options;
  std::chrono::milliseconds timeout;
  OptimizerMaker maker;
  std::mutex mutex; // guards the members below
  std::map<int, std::unique_ptr<Served>> servers;
  std::optional<std::string> aborted;
};

class LocalParameterServer::Link : public ParameterLink {
public:
  Link(Served& served, int worker, std::chrono::milliseconds timeout)
      : served_(&served), worker_(worker), timeout_(timeout) {
    const std::scoped_lock lock(served.mutex);
    session_ = ++served.sessions;
    if (const auto why = served.server.join(worker, session_, Clock::now()); !why.empty())
      throw std::invalid_argument(why);
  }
  ~Link() override {
    const std::scoped_lock lock(served_->mutex);
    served_->server.leave(worker_, session_);
    served_->changed.notify_all();
  }

  int servers() const override { return 1; }
  std::int64_t version() const override { return version_; }

  void begin(const OptimizerRecipe& recipe, const ShardPlan& plan,
             at::Tensor& parameters) override {
    const ServedSlice slice{
        .recipe = recipe, .segments = plan.at(0), .type = parameters.scalar_type()};
    for (const Segment& segment : slice.segments)
      owners_.push_back(static_cast<std::size_t>(segment.parameter));
    std::unique_lock lock(served_->mutex);
    if (worker_ == 0 && !served_->server.has_begun()) {
      served_->server.begin(slice, parameters);
      served_->changed.notify_all();
    }
    wait(lock, 0);
    served_->server.check_same(slice);
    receive(parameters);
  }

  ExchangeReport exchange(const at::Tensor& gradient, const std::vector<bool>& present,
                          const std::vector<double>& learning_rates,
                          at::Tensor& parameters) override {
    Push push{.worker = worker_,
              .session = session_,
              .step = ++step_,
              .version = version_,
              .gradient = gradient,
              .present = {},
              .learning_rates = learning_rates};
    if (!present.empty())
      for (const std::size_t owner : owners_)
        push.present.push_back(present.at(owner));
    const auto begun = Clock::now();
    std::unique_lock lock(served_->mutex);
    const PushAnswer answer = served_->server.push(push, begun);
    if (answer.outcome == Outcome::refused || answer.outcome == Outcome::unknown)
      throw std::runtime_error("parameter server: " + answer.why);
    served_->changed.notify_all();
    wait(lock, step_);
    receive(parameters);
    return {.version = version_,
            .staleness = answer.staleness,
            .dropped = answer.outcome == Outcome::dropped ? 1 : 0,
            .rate_scale = answer.rate_scale,
            .rewound = answer.outcome == Outcome::rewound ? 1 : 0,
            .waited_seconds = std::chrono::duration<double>(Clock::now() - begun).count()};
  }

  void suspend_participation() override {
    const std::scoped_lock lock(served_->mutex);
    served_->server.suspend_participation(worker_, session_, step_, Clock::now());
    served_->changed.notify_all();
  }

private:
  void wait(std::unique_lock<std::mutex>& lock, std::int64_t step) {
    PullAnswer pull;
    const auto ready = [&] {
      pull = served_->server.pull(worker_, step);
      return pull.ready || served_->aborted;
    };
    const bool ended = served_->changed.wait_until(lock, Clock::now() + timeout_, ready);
    if (served_->aborted)
      throw std::runtime_error("parameter server: another replica failed: " + *served_->aborted);
    if (!ended)
      throw std::runtime_error("parameter server: " + pull.why + " for "
                               + std::to_string(timeout_.count())
                               + " ms. Look at the replicas that are waited for, or raise the "
                                 "timeout");
  }

  void receive(at::Tensor& parameters) {
    parameters.copy_(served_->server.parameters());
    version_ = served_->server.version();
  }

  Served* served_;
  int worker_;
  std::chrono::milliseconds timeout_;
  std::uint64_t session_ = 0;
  std::int64_t step_ = 0;
  std::int64_t version_ = 0;
  std::vector<std::size_t> owners_; // [segment]; index of its parameter
};

LocalParameterServer::LocalParameterServer(const ParameterServerOptions& options,
                                           std::chrono::milliseconds timeout, OptimizerMaker maker)
    : state_(std::make_unique<State>()) {
  check(options);
  if (timeout.count() <= 0)
    throw std::invalid_argument("the timeout of a parameter server, "
                                + std::to_string(timeout.count()) + " ms, must be positive");
  state_->options = options;
  state_->timeout = timeout;
  state_->maker = std::move(maker);
}

LocalParameterServer::~LocalParameterServer() = default;

std::unique_ptr<ParameterLink> LocalParameterServer::link(int worker, int optimizer) {
  return std::make_unique<Link>(state_->served(optimizer), worker, state_->timeout);
}

ParameterServerCounters LocalParameterServer::counters(int optimizer) const {
  Served& served = state_->served(optimizer);
  const std::scoped_lock lock(served.mutex);
  return served.server.counters();
}

std::int64_t LocalParameterServer::version(int optimizer) const {
  Served& served = state_->served(optimizer);
  const std::scoped_lock lock(served.mutex);
  return served.server.version();
}

TensorMap LocalParameterServer::snapshot(int optimizer) const {
  Served& served = state_->served(optimizer);
  const std::scoped_lock lock(served.mutex);
  return served.server.snapshot();
}

void LocalParameterServer::replace(int optimizer, const TensorMap& snapshot, std::int64_t load) {
  Served& served = state_->served(optimizer);
  const std::scoped_lock lock(served.mutex);
  served.server.replace(snapshot, load);
}

void LocalParameterServer::abort(const std::string& reason) {
  const std::scoped_lock lock(state_->mutex);
  state_->aborted = reason;
  for (const auto& [optimizer, served] : state_->servers) {
    const std::scoped_lock one(served->mutex);
    served->aborted = reason;
    served->changed.notify_all();
  }
}

} // namespace troupe::learner
