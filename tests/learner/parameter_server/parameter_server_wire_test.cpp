#include <random>

#include "tests/learner/replicas/line_fit.hpp"

#include "tests/doctest_torch.hpp"

#include "env/wire/deployment_keys.hpp"
#include "learner/parameter_server/parameter_server_client.hpp"
#include "learner/parameter_server/parameter_server_host.hpp"
#include "tests/another_user.hpp"
#include "tests/temporary_folder.hpp"

#include "learner/parameter_server/parameter_server.pb.h"

namespace troupe::learner {
namespace {

using namespace std::chrono_literals;
using env::wire::Context;
using Clean = std::vector<std::string>;

std::unique_ptr<torch::optim::Optimizer> adam_of(const LineFit& fit) {
  return std::make_unique<torch::optim::Adam>(fit.model->parameters(),
                                              torch::optim::AdamOptions(0.05));
}

ParameterServerClientOptions client_of(const std::vector<std::string>& endpoints, int worker) {
  return {.endpoints = endpoints,
          .worker = worker,
          .timeout = 20s,
          .ask_interval = 20ms,
          .beat_interval = 50ms};
}

/// A worker that makes its steps on request.
struct Worker {
  Worker(Context& context, const ParameterServerClientOptions& options)
      : fit(options.worker),
        replica(ReplicaAssignment{.update_rule = remote_parameter_server_rules(context, options)}),
        optimizer(replica.wrap_optimizer(adam_of(fit))) {}
  void step(const Problem& problem, std::int64_t first, std::int64_t count) {
    fit.step(*optimizer, problem, first, count);
  }
  LineFit fit;
  ReplicaContext replica;
  std::unique_ptr<WrappedOptimizer> optimizer;
};

std::vector<at::Tensor> train(const std::vector<std::string>& endpoints, const Problem& problem,
                              int workers, int steps) {
  std::vector<at::Tensor> results(static_cast<std::size_t>(workers));
  const auto rows = problem.x.size(0) / workers;
  const auto errors = on_threads(workers, [&](int id) {
    Context context;
    Worker worker(context, client_of(endpoints, id));
    for (int i = 0; i < steps; ++i)
      worker.step(problem, id * rows, rows);
    results[static_cast<std::size_t>(id)] = worker.fit.flat();
  });
  CHECK(errors == Clean(static_cast<std::size_t>(workers)));
  return results;
}

at::Tensor alone(const Problem& problem, int steps) {
  LineFit fit(0);
  ReplicaContext context(nullptr);
  const auto optimizer = context.wrap_optimizer(adam_of(fit));
  for (int i = 0; i < steps; ++i)
    fit.step(*optimizer, problem, 0, problem.x.size(0));
  return fit.flat();
}

} // namespace

TEST_CASE("Synchronous workers with one and three servers equal one replica on the whole batch") {
  const Problem problem;
  const auto expected = alone(problem, 40);
  for (const std::size_t shards : {1U, 3U}) {
    Context context;
    std::vector<std::unique_ptr<ParameterServerHost>> hosts;
    std::vector<std::string> endpoints;
    for (std::size_t i = 0; i < shards; ++i) {
      hosts.push_back(std::make_unique<ParameterServerHost>(
          context, ParameterServerHostOptions{.server = central_storage(2)}));
      endpoints.push_back(hosts.back()->endpoint());
    }
    for (const auto& result : train(endpoints, problem, 2, 40))
      CHECK(result.allclose(expected, 1e-9, 1e-12));
    for (const auto& host : hosts) {
      CHECK(host->version() == 40);
      CHECK(host->server_counters().applied == 80);
      CHECK(host->counters().garbage == 0);
    }
  }
}

TEST_CASE("Two servers apply each gradient of the asynchronous workers once, and every worker "
          "reaches the solution") {
  const Problem problem;
  Context context;
  ParameterServerHost one(context, {.server = {.workers = 3}});
  ParameterServerHost two(context, {.server = {.workers = 3}});
  const auto results = train({one.endpoint(), two.endpoint()}, problem, 3, 150);
  CHECK(one.server_counters().applied == 450);
  CHECK(two.server_counters().applied == 450);
  for (const auto& result : results)
    CHECK(final_loss(problem, result) < final_loss(problem, LineFit(0).flat()) / 10);
}

TEST_CASE(
    "A worker whose gradient is not finite skips its step, and no other worker waits for it") {
  Context context;
  ParameterServerHost host(context, {.server = central_storage(2)});
  std::vector<double> found(2);
  const auto errors = on_threads(2, [&](int id) {
    Context mine;
    auto parameter = torch::zeros({3}).requires_grad_();
    ReplicaContext replica(ReplicaAssignment{
        .update_rule = remote_parameter_server_rules(mine, client_of({host.endpoint()}, id))});
    const auto optimizer = replica.wrap_optimizer(
        std::make_unique<torch::optim::SGD>(std::vector<at::Tensor>{parameter}, 1.0),
        {.skip_not_finite = 1});
    for (int step = 0; step < 3; ++step) {
      optimizer->zero_grad();
      (parameter.sum() * (id == 1 && step == 1 ? NAN : 2.0F)).backward();
      optimizer->step();
    }
    found[static_cast<std::size_t>(id)] = parameter.detach().max().item<double>();
  });
  CHECK(errors == Clean(2));
  CHECK(found == std::vector<double>{-6, -6});
  CHECK(host.server_counters().applied == 5);
  CHECK(host.counters().garbage == 0);
}

TEST_CASE("Parameters of 40 MB are sent in several frames") {
  Context context;
  ParameterServerHost host(context, {.server = {.workers = 1}});
  auto big = torch::arange(10'000'000, at::kFloat);
  ReplicaContext replica(ReplicaAssignment{
      .update_rule = remote_parameter_server_rules(context, client_of({host.endpoint()}, 0))});
  const auto optimizer = replica.wrap_optimizer(std::make_unique<torch::optim::SGD>(
      std::vector<at::Tensor>{big}, torch::optim::SGDOptions(1)));
  big.mutable_grad() = torch::arange(10'000'000, at::kFloat);
  optimizer->step();
  CHECK(big.abs().max().item<double>() == 0);
}

TEST_CASE("A restarted server gets the parameters from its worker or continues from its snapshot") {
  const TemporaryFolder folder;
  const Problem problem;
  for (const bool with_snapshot : {false, true}) {
    ParameterServerHostOptions options{.server = {.workers = 1}};
    if (with_snapshot)
      options.snapshot = folder.path() / "shard.safetensors";
    auto server_context = std::make_unique<Context>();
    auto host = std::make_unique<ParameterServerHost>(*server_context, options);
    options.endpoint = host->endpoint();
    Context context;
    Worker worker(context, client_of({options.endpoint}, 0));
    for (int i = 0; i < 10; ++i)
      worker.step(problem, 0, 32);
    host.reset(); // writes its final state
    server_context = std::make_unique<Context>();
    host = std::make_unique<ParameterServerHost>(*server_context, options);
    CHECK(host->version() == (with_snapshot ? 10 : 0));
    for (int i = 0; i < 10; ++i)
      worker.step(problem, 0, 32);
    CHECK(host->version() == 20);
    if (with_snapshot) // including the moments
      CHECK(worker.fit.flat().allclose(alone(problem, 20), 1e-12, 1e-12));
  }
}

TEST_CASE("A server that dies right after loading a checkpoint restarts with what it loaded") {
  const TemporaryFolder folder;
  Context context;
  const auto part = folder / "part.safetensors";
  {
    ParameterServerHost host(context, {.server = {.workers = 1}});
    Worker worker(context, client_of({host.endpoint()}, 0));
    worker.step(Problem(), 0, 32);
    host.save(part);
  }
  const auto snapshot = folder / "shard.safetensors";
  ParameterServerHost resumed(context, {.server = {.workers = 1}, .snapshot = snapshot});
  resumed.load({part}); // as if it were killed now
  ParameterServerHost restarted(context, {.server = {.workers = 1}, .snapshot = snapshot});
  CHECK(restarted.version() == 1);
  const auto before = resumed.snapshot(0), after = restarted.snapshot(0);
  REQUIRE(before.size() == after.size());
  for (const auto& [name, tensor] : before)
    if (name != "header") // which describes the workers, too
      CHECK(tensor.equal(after.at(name)));
}

TEST_CASE("A worker that falls silent is not waited for") {
  const Problem problem;
  Context context;
  auto server = central_storage(2);
  server.worker_timeout = 300ms;
  ParameterServerHost host(context, {.server = server});
  auto options = client_of({host.endpoint()}, 1);
  options.beat_interval = 1h; // computes forever without a heartbeat, as if killed
  std::unique_ptr<Worker> silent;
  const auto errors = on_threads(2, [&](int id) {
    if (id == 1) {
      silent = std::make_unique<Worker>(context, options);
      silent->step(problem, 0, 32);
      return;
    }
    Worker worker(context, client_of({host.endpoint()}, 0));
    for (int i = 0; i < 30; ++i)
      worker.step(problem, 0, 32);
  });
  CHECK(errors == Clean(2));
  CHECK(host.version() == 30);
  CHECK(host.server_counters().lost_workers == 1);
}

TEST_CASE("A missing server and missing workers are named at the deadline") {
  Context context;
  auto options = client_of({"tcp://127.0.0.1:1"}, 0);
  options.timeout = 100ms;
  CHECK_THROWS_WITH(
      Worker(context, options),
      doctest::Contains("parameter server at tcp://127.0.0.1:1 gave no sign of life"));
  ParameterServerHost host(context, {.server = central_storage(2)});
  options.endpoints = {host.endpoint()};
  Worker worker(context, options);
  CHECK_THROWS_WITH(worker.step(Problem(), 0, 32), doctest::Contains("those of workers 1 are not"));
  options.worker = 2;
  CHECK_THROWS_WITH(Worker(context, options), doctest::Contains("the server has 2 workers"));
  options.worker = 1;
  CHECK_THROWS_WITH(ReplicaContext(ReplicaAssignment{.update_rule = remote_parameter_server_rules(
                                                         context, options)})
                        .wrap_optimizer(std::make_unique<torch::optim::Adam>(
                            std::vector<at::Tensor>{torch::zeros({3})})),
                    doctest::Contains("this worker has other parameters (3 elements"));
}

TEST_CASE("A process of another user cannot take a worker's place") {
  if (::geteuid() != 0) {
    MESSAGE("skipped: only root can act as another user");
    return;
  }
  const Problem problem;
  Context context;
  ParameterServerHost host(context, {.server = {.workers = 1}});
  Worker worker(context, client_of({host.endpoint()}, 0));
  worker.step(problem, 0, 32);
  const auto errors = on_threads(1, [&](int) {
    const tests::AnotherUser user;
    Context theirs; // its threads belong to that user
    auto options = client_of({host.endpoint()}, 0);
    options.timeout = 300ms;
    const Worker stranger(theirs, options);
  });
  CHECK_FALSE(errors[0].empty());
  worker.step(problem, 0, 32); // it was not replaced
  CHECK(host.version() == 2);
}

TEST_CASE("With keys, only clients with an allowed key are served") {
  const auto server_pair = env::wire::make_key_pair();
  const auto client_pair = env::wire::make_key_pair();
  Context context;
  ParameterServerHost host(context, {.server = {.workers = 1},
                                     .keys = env::wire::ServerKeys{
                                         .own = server_pair, .allowed = {client_pair.public_key}}});
  auto options = client_of({host.endpoint()}, 0);
  options.timeout = 300ms;
  CHECK_THROWS_WITH(Worker(context, options), doctest::Contains("no sign of life"));
  options.timeout = 20s;
  options.keys = env::wire::ClientKeys{.own = client_pair, .server = server_pair.public_key};
  Worker worker(context, options);
  worker.step(Problem(), 0, 32);
  CHECK(host.version() == 1);
}

TEST_CASE("Off the loopback interface, a deployment's keys are necessary and sufficient") {
  const auto deployment = [] {
    return std::make_shared<env::wire::DeploymentKeys>(
        env::wire::DeploymentKeys{.own = env::wire::make_key_pair(), .retired = {}});
  };
  const ParameterServerHostOptions everywhere{.server = {.workers = 1},
                                              .endpoint = "tcp://0.0.0.0:*"};
  Context plain;
  CHECK_THROWS_AS(ParameterServerHost(plain, everywhere), std::invalid_argument);
  Context context(1, deployment());
  ParameterServerHost host(context, everywhere);
  std::string endpoint = host.endpoint();
  endpoint.replace(endpoint.find("0.0.0.0"), 7, "127.0.0.1");
  auto options = client_of({endpoint}, 0);
  options.timeout = 300ms;
  Context other(1, deployment());
  CHECK_THROWS_WITH(Worker(other, options), doctest::Contains("no sign of life"));
  options.timeout = 20s;
  Worker worker(context, options);
  worker.step(Problem(), 0, 32);
  CHECK(host.version() == 1);
}

TEST_CASE("Random messages neither stop a server nor change its parameters") {
  Context context;
  ParameterServerHost host(context, {.server = {.workers = 2}, .most_bytes = 1 << 20});
  Worker worker(context, client_of({host.endpoint()}, 0));
  worker.step(Problem(), 0, 32);
  env::wire::Socket stranger(context, env::wire::SocketType::dealer);
  stranger.connect(host.endpoint());
  std::mt19937 random(11);
  std::vector<std::string> valid;
  for (int kind = 0; kind < 4; ++kind) {
    wire::Envelope head;
    head.set_protocol(1);
    head.set_worker(1);
    head.set_session(5);
    head.set_step(kind);
    if (kind == 0) {
      auto& join = *head.mutable_join();
      join.set_can_begin(true);
      join.mutable_slice()->set_type(1);
      join.mutable_slice()->mutable_recipe()->set_name("SGD");
      join.mutable_slice()->mutable_recipe()->add_groups();
      join.mutable_slice()->add_segments()->set_count(1LL << 40);
      head.set_optimizer(3);
    } else if (kind == 1) {
      head.mutable_exchange()->mutable_push()->set_present("abc");
    } else if (kind == 2) {
      head.mutable_answer();
    } else {
      head.mutable_join()->mutable_slice()->set_type(9);
    }
    valid.push_back(head.SerializeAsString());
  }
  for (int i = 0; i < 3000; ++i) {
    env::wire::Message message;
    message.header = valid[random() % valid.size()];
    for (std::size_t j = 0; j < random() % 4; ++j)
      message.header[random() % message.header.size()] = static_cast<char>(random());
    message.header.resize(message.header.size() - random() % 3);
    for (std::size_t j = 0; j < random() % 3; ++j)
      message.frames.emplace_back(static_cast<std::size_t>(random() % 100));
    for (auto& frame : message.frames)
      std::fill(frame.bytes().begin(), frame.bytes().end(), std::byte{0x7f});
    stranger.send(std::move(message), std::chrono::steady_clock::now() + 5s);
  }
  wire::Envelope last; // the server handles a client's messages in order, and refuses this one
  last.set_protocol(1);
  last.set_worker(7);
  last.set_step(424242);
  last.mutable_join();
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  stranger.send({"", last.SerializeAsString(), {}}, deadline);
  wire::Envelope answer;
  while (answer.step() != last.step()) {
    REQUIRE(stranger.wait(deadline));
    env::wire::Message message;
    if (stranger.try_receive(message) == env::wire::Socket::Received::message)
      REQUIRE(answer.ParseFromString(message.header));
  }
  const auto before = worker.fit.flat();
  worker.step(Problem(), 0, 32);
  CHECK(worker.fit.flat().isfinite().all().item<bool>());
  CHECK((worker.fit.flat() - before).abs().max().item<double>() < 0.1);
  CHECK(host.version() == 2);
  CHECK(host.counters().garbage > 100);
}

TEST_CASE("A replica refuses a checkpoint while its servers have new parameters") {
  const Problem problem;
  const TemporaryFolder folder;
  Context context;
  TensorMap saved;
  {
    ParameterServerHost host(context, {.server = {.workers = 1}});
    Worker worker(context, client_of({host.endpoint()}, 0));
    worker.step(problem, 0, 32);
    saved = worker.optimizer->state();
    host.save(folder / "shard0.safetensors");
  }
  ParameterServerHost fresh(context, {.server = {.workers = 1}});
  Worker early(context, client_of({fresh.endpoint()}, 0));
  CHECK_THROWS_WITH_AS(early.optimizer->load(saved),
                       doctest::Contains("the parameter servers have new parameters"),
                       std::runtime_error);
  ParameterServerHost restored(context, {.server = {.workers = 1}});
  restored.load({folder / "shard0.safetensors"});
  Worker resumed(context, client_of({restored.endpoint()}, 0));
  resumed.optimizer->load(saved);
  CHECK(resumed.optimizer->steps() == 1);
}

} // namespace troupe::learner
