// The other processes of the fault tests. Each runs until it is killed or its parent is gone.
//   strategy_process server STRATEGY WORKERS ENDPOINT [SNAPSHOT]: prints its endpoint
//   strategy_process worker STRATEGY WORKERS ENDPOINTS ID [PORT]: prints each step it has made
// STRATEGY: asynchronous, lead (asynchronous, at most 2 steps ahead), central, backup (one worker),
// groups (of two processes each; PORT is the port of the group's rendezvous), local (local SGD over
// PORT).
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

#include "learner/gradients/local_sgd_rule.hpp"
#include "learner/parameter_server/parameter_server_client.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "tests/learner/replicas/line_fit.hpp"

namespace troupe::learner {
namespace {

using namespace std::chrono_literals;

void say(const std::string& text) {
  const std::string line = text + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0)
    ::_exit(1);
}

ParameterServerOptions server_options(const std::string& strategy, int workers) {
  ParameterServerOptions made{.workers = workers};
  if (strategy == "central")
    made = central_storage(workers);
  if (strategy == "backup")
    made = with_backup_workers(workers, 1);
  if (strategy == "lead")
    made.max_lead = 2;
  made.worker_timeout = 1'000ms;
  return made;
}

[[noreturn]] void serve(const std::string& strategy, int workers, const std::string& endpoint,
                        const std::string& snapshot) {
  env::wire::Context context;
  ParameterServerHost host(context, {.server = server_options(strategy, workers),
                                     .endpoint = endpoint,
                                     .snapshot = snapshot,
                                     .snapshot_period = 100ms});
  say(host.endpoint());
  for (;;)
    ::pause();
}

[[noreturn]] void work(const std::string& strategy, const std::string& endpoints, int id,
                       int port) {
  at::set_num_threads(1);
  env::wire::Context context;
  const bool grouped = strategy == "groups" || strategy == "local";
  std::unique_ptr<collectives::Communicator> communicator;
  if (grouped)
    communicator =
        collectives::make_tcp_communicator("127.0.0.1", port, id % 2, 2, {.timeout = 5s});
  ParameterServerClientOptions client{
      .worker = strategy == "groups" ? id / 2 : id,
      .timeout = 20s,
      .ask_interval = 100ms,
      .beat_interval = 200ms,
  };
  std::istringstream list(endpoints);
  for (std::string one; std::getline(list, one, ',');)
    client.endpoints.push_back(one);
  const Problem problem;
  LineFit fit(id);
  ReplicaContext replica(ReplicaAssignment{
      .communicator = communicator.get(),
      .update_rule = strategy == "local"
                         ? local_sgd_rules(communicator.get(), {.period = 4})
                         : remote_parameter_server_rules(context, client,
                                                         {.communicator = communicator.get()})});
  const auto optimizer = replica.wrap_optimizer(
      std::make_unique<torch::optim::SGD>(fit.model->parameters(), torch::optim::SGDOptions(0.01)));
  for (int step = 1;; ++step) {
    fit.step(*optimizer, problem, 0, 32);
    say("step " + std::to_string(step) + " "
        + std::to_string(fit.loss(problem.x, problem.y).item<double>()));
  }
}

} // namespace
} // namespace troupe::learner

int main(int count, char** arguments) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const std::string mode = count > 4 ? arguments[1] : "";
    if (mode == "server")
      troupe::learner::serve(arguments[2], std::atoi(arguments[3]), arguments[4],
                             count > 5 ? arguments[5] : "");
    if (mode == "worker" && count > 5)
      troupe::learner::work(arguments[2], arguments[4], std::atoi(arguments[5]),
                            count > 6 ? std::atoi(arguments[6]) : 0);
    std::fprintf(stderr, "strategy_process: see its source\n");
  } catch (const std::exception& e) {
    troupe::learner::say(std::string("failed ") + e.what());
  }
  return 1;
}
