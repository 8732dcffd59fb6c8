// Simulated exchanges of workers with several servers, whose messages are delayed at random, and
// which are lost and restart.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/optim/sgd.h>

#include "tests/doctest_torch.hpp"

#include "learner/parameter_server/parameter_server.hpp"

namespace troupe::learner {
namespace {

const ParameterServer::Time kNow{};

/// Workers that join one after the other, exchange with the servers of two optimizers in each step,
/// and rest after the steps they were granted. Messages are delayed at random, but those from one
/// worker to one server keep their order. A server that restarts continues from a snapshot, or from
/// the parameters of the first worker that pushes to it. Its answers are lost, and sometimes the
/// messages on their way to it.
class Exchanges {
public:
  Exchanges(int workers, int backup_workers, int hosts, unsigned seed)
      : hosts_(hosts),
        random_(seed),
        options_(with_backup_workers(workers, backup_workers)),
        workers_(static_cast<std::size_t>(workers)) {
    const torch::optim::SGD sgd({torch::zeros({1})}, torch::optim::SGDOptions(1));
    slice_ = {.recipe = describe(sgd), .segments = {{.count = 2}}, .type = at::kFloat};
    for (int i = 0; i < kOptimizers * hosts; ++i) {
      auto& made = servers_.emplace_back(std::make_unique<ParameterServer>(options_, kNow));
      made->begin(slice_, torch::zeros({2}));
      saved_.push_back(made->snapshot());
    }
    for (Worker& worker : workers_)
      worker.at.resize(servers_.size());
  }

  /// Returns how many workers wait although no message is on its way.
  int play(std::int64_t grants, int restarts) {
    for (std::int64_t granted = 0;;) {
      if (granted < grants && random_() % 40 == 0)
        ++granted;
      if (restarts > 0 && random_() % 60 == 0) {
        --restarts;
        restart(random_() % servers_.size());
      }
      if (random_() % 20 == 0) {
        const auto at = random_() % servers_.size();
        if (servers_[at]->has_begun())
          saved_[at] = servers_[at]->snapshot();
      }
      auto moves = moves_of_all(granted);
      if (moves.empty() || random_() % 20 == 0) {
        for (std::size_t i = 0; i < workers_.size(); ++i)
          beat(i);
        moves = moves_of_all(granted);
      }
      if (!moves.empty())
        make(moves[random_() % moves.size()], granted);
      else if (granted < grants)
        ++granted;
      else
        return static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const auto& w) {
          return w.step < grants || w.optimizer != 0;
        }));
    }
  }
  /// The gradients that servers dropped, except those of servers that were lost.
  std::int64_t dropped() const {
    std::int64_t sum = 0;
    for (const auto& server : servers_)
      sum += server->counters().dropped;
    return sum;
  }

private:
  static constexpr int kOptimizers = 2;
  struct Letter {
    Push push;
    bool rests = false;
  };
  /// A worker's side of its connection to one server.
  struct Side {
    std::deque<Letter> mail;
    bool joined = false;
    std::int64_t version = 0; // of the parameters it has from there
    std::int64_t step = 0;    // last step begun there
    bool done = true;         // the server has answered that step
  };
  struct Worker {
    std::int64_t step = 0; // steps made
    int optimizer = 0;     // optimizer of the current exchange
    bool waits = false;
    bool rests = false;
    std::vector<Side> at; // [server]
  };
  enum class Kind : std::uint8_t { step, deliver, receive, repeat };
  struct Move {
    Kind kind;
    std::size_t worker;
    std::size_t server = 0;
  };

  static std::uint64_t session(std::size_t worker) { return worker + 100; }

  std::vector<Move> moves_of_all(std::int64_t granted) const {
    std::vector<Move> moves;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      const Worker& worker = workers_[i];
      if (!worker.waits && (worker.step < granted || worker.optimizer != 0 || !worker.rests))
        moves.push_back({.kind = Kind::step, .worker = i});
      for (std::size_t at = 0; at < servers_.size(); ++at) {
        const Side& side = worker.at[at];
        if (!side.mail.empty())
          moves.push_back({.kind = Kind::deliver, .worker = i, .server = at});
        else if (!side.done && !servers_[at]->answer_to(static_cast<int>(i), side.step))
          moves.push_back({.kind = Kind::repeat, .worker = i, .server = at});
        else if (!side.done && servers_[at]->pull(static_cast<int>(i), side.step).ready)
          moves.push_back({.kind = Kind::receive, .worker = i, .server = at});
      }
    }
    return moves;
  }

  void make(const Move& move, std::int64_t granted) {
    switch (move.kind) {
    case Kind::step:
      return step(move.worker, granted);
    case Kind::deliver:
      return deliver(move.worker, move.server);
    case Kind::repeat:
      return push(move.worker, move.server);
    case Kind::receive:
      return receive(move.worker, move.server);
    }
  }

  /// Begins the next exchange, or rests.
  void step(std::size_t i, std::int64_t granted) {
    Worker& worker = workers_[i];
    worker.rests = worker.optimizer == 0 && worker.step >= granted;
    worker.waits = !worker.rests;
    for (std::size_t at = 0; at < servers_.size(); ++at) {
      Side& side = worker.at[at];
      if (worker.rests) {
        push(i, at);
        side.mail.back().rests = true;
      } else if (at / static_cast<std::size_t>(hosts_)
                 == static_cast<std::size_t>(worker.optimizer)) {
        ++side.step;
        side.done = false;
        push(i, at);
      }
    }
  }

  void push(std::size_t i, std::size_t at) {
    Side& side = workers_[i].at[at];
    side.mail.push_back({.push = {.worker = static_cast<int>(i),
                                  .session = session(i),
                                  .step = side.step,
                                  .version = side.version,
                                  .gradient = gradient_,
                                  .present = {true}}});
  }

  void deliver(std::size_t i, std::size_t at) {
    auto& mail = workers_[i].at[at].mail;
    const Letter letter = std::move(mail.front());
    mail.pop_front();
    if (!std::exchange(workers_[i].at[at].joined, true))
      REQUIRE(servers_[at]->join(static_cast<int>(i), session(i), kNow) == "");
    if (letter.rests) {
      if (letter.push.step > 0)
        servers_[at]->set_worker_version(static_cast<int>(i), session(i), letter.push.step,
                                         letter.push.version);
      servers_[at]->suspend_participation(static_cast<int>(i), session(i), letter.push.step, kNow);
      return;
    }
    const PushAnswer answer = servers_[at]->push(letter.push, kNow);
    CHECK(answer.outcome != Outcome::refused);
    if (!servers_[at]->has_begun())
      servers_[at]->begin(slice_, torch::zeros({2}), letter.push.version);
    if (answer.outcome == Outcome::unknown)
      REQUIRE(servers_[at]->join(static_cast<int>(i), session(i), kNow, letter.push.step) == "");
  }

  void receive(std::size_t i, std::size_t at) {
    Worker& worker = workers_[i];
    worker.at[at].version = servers_[at]->version();
    worker.at[at].done = true;
    servers_[at]->parameters_sent(static_cast<int>(i));
    worker.waits = std::any_of(worker.at.begin(), worker.at.end(),
                               [](const Side& side) { return !side.done; });
    if (worker.waits)
      return;
    worker.optimizer = (worker.optimizer + 1) % kOptimizers;
    worker.step += worker.optimizer == 0 ? 1 : 0;
  }

  void beat(std::size_t i) {
    for (std::size_t at = 0; at < servers_.size(); ++at) {
      const Side& side = workers_[i].at[at];
      const auto worker = static_cast<int>(i);
      servers_[at]->heartbeat(worker, session(i), kNow);
      if (const auto answered = side.done ? side.step : side.step - 1; answered > 0)
        servers_[at]->set_worker_version(worker, session(i), answered, side.version);
      if (workers_[i].rests)
        servers_[at]->suspend_participation(worker, session(i), side.step, kNow);
    }
  }

  void restart(std::size_t at) {
    servers_[at] = std::make_unique<ParameterServer>(options_, kNow);
    if (random_() % 2 == 0)
      servers_[at]->restore(saved_[at]);
    if (random_() % 2 == 0)
      return;
    for (Worker& worker : workers_)
      worker.at[at].mail.clear();
  }

  int hosts_;
  std::mt19937 random_;
  ParameterServerOptions options_;
  ServedSlice slice_;
  at::Tensor gradient_ = torch::zeros({2});
  std::vector<std::unique_ptr<ParameterServer>> servers_; // [optimizer * hosts + host]
  std::vector<TensorMap> saved_;                          // [server] the newest snapshot
  std::vector<Worker> workers_;
};

} // namespace

TEST_CASE("No worker waits at one optimizer for workers that wait for it at another") {
  for (const auto& [workers, backup_workers, hosts, first_seed] : {std::tuple{3, 1, 1, 0U},
                                                                   {3, 1, 2, 0U},
                                                                   {4, 1, 1, 1'100U},
                                                                   {4, 2, 2, 0U},
                                                                   {5, 1, 2, 0U},
                                                                   {3, 0, 2, 0U}})
    for (unsigned seed = first_seed; seed < first_seed + 300; ++seed) {
      CAPTURE(workers);
      CAPTURE(backup_workers);
      CAPTURE(hosts);
      CAPTURE(seed);
      Exchanges exchanges(workers, backup_workers, hosts, seed);
      CHECK(exchanges.play(20, 0) == 0);
      if (backup_workers == 0)
        CHECK(exchanges.dropped() == 0);
    }
}

TEST_CASE("After servers restart from older snapshots or without one, no worker waits for ever") {
  for (const auto& [workers, backup_workers, hosts] : {std::tuple{2, 0, 1},
                                                       {2, 0, 2},
                                                       {3, 0, 2},
                                                       {3, 1, 1},
                                                       {3, 1, 2},
                                                       {4, 1, 1},
                                                       {4, 2, 2},
                                                       {5, 1, 2}})
    for (const int restarts : {1, 5})
      for (unsigned seed = 0; seed < 200; ++seed) {
        CAPTURE(workers);
        CAPTURE(backup_workers);
        CAPTURE(hosts);
        CAPTURE(restarts);
        CAPTURE(seed);
        Exchanges exchanges(workers, backup_workers, hosts, seed);
        CHECK(exchanges.play(20, restarts) == 0);
      }
}

} // namespace troupe::learner
