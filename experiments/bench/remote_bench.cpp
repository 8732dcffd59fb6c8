#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

#include "env/processes/exec_words.hpp"
#include "env/remote/environment_server.hpp"
#include "env/remote/remote_environment.hpp"
#include "experiments/bench/bench.hpp"
#include "experiments/bench/bench_folder.hpp"
#include "experiments/bench/forked_server.hpp"

namespace troupe::experiments {

namespace {

constexpr std::size_t kObservation = 17; // float64; with 6 actions, as HalfCheetah
constexpr int kRemoteTurns = 50;         // between two readings of the clock

/// Does nothing, so that only the protocol is measured.
class IdlePeer : public env::Environment {
public:
  IdlePeer() {
    spec_.name = "idle";
    spec_.observations = {{"observation", env::ElementType::float64, {kObservation}}};
    spec_.action = {.minimum = std::vector<double>(6, -1), .maximum = std::vector<double>(6, 1)};
  }
  const env::EnvironmentSpec& spec() const override { return spec_; }
  env::TimeStep reset(std::uint64_t, std::span<std::byte>) override { return {}; }
  env::TimeStep step(std::span<const double>, std::span<std::byte>) override {
    return {.step_type = env::StepType::mid};
  }
  void save_state(std::vector<std::byte>&) const override {}
  std::span<const std::byte> load_state(std::span<const std::byte> in) override { return in; }

private:
  env::EnvironmentSpec spec_;
};

/// The process `python3 -m troupe_env serve python troupe_env.idle:make`; nothing if there is no
/// Python with the packages.
std::unique_ptr<ForkedServer> serve_in_python(const std::string& endpoint, std::size_t count) {
  const std::string package =
      (std::filesystem::path(TROUPE_CONFIG_DIR) / "../../env/remote/python").string();
  // Uses -c instead of PYTHONPATH, to leave the environment variables unchanged.
  const std::string code = "import sys; sys.path.insert(0, sys.argv.pop(1)); "
                           "from troupe_env.__main__ import main; sys.exit(main())";
  const std::vector<std::string> words{"python3",
                                       "-c",
                                       code,
                                       package,
                                       "serve",
                                       "python",
                                       "troupe_env.idle:make",
                                       "--endpoint",
                                       endpoint,
                                       "--count",
                                       std::to_string(count),
                                       "--quiet"};
  const std::vector<char*> pointers = exec_words(words);
  try {
    return std::make_unique<ForkedServer>("remote", [&](int out) {
      ::dup2(out, STDOUT_FILENO);
      ::execvp(pointers[0], pointers.data());
    });
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

/// Measures microseconds per step of one environment, and per round trip of the whole batch.
void measure(const BenchOptions& options, const Report& report, const std::string& who,
             const std::string& endpoint, std::size_t batch) {
  env::RemoteEnvironments remote({.endpoint = endpoint, .environments = batch});
  std::vector<env::TimeStep> steps(batch);
  std::vector<std::byte> observations(batch * remote.spec().observation_bytes());
  const env::RemoteResults results{.steps = steps, .observations = observations};
  const std::vector<env::Turn> resets(batch, env::Turn{.kind = env::Turn::Kind::reset});
  remote.play(resets, {}, results);
  const std::vector<double> actions(batch * remote.spec().action.size(), 0.5);
  const auto turns = measure_rates(options, [&] {
    for (int i = 0; i < kRemoteTurns; ++i)
      remote.step(actions, results);
    return static_cast<double>(kRemoteTurns);
  });
  const auto tell = [&](const std::string& metric, double divisor) {
    std::vector<double> microseconds;
    for (const double rate : turns)
      microseconds.push_back(1e6 / rate / divisor);
    report_values(
        report, "remote", who + ", " + metric, "microseconds", microseconds,
        {{"batch", std::to_string(batch)}, {"transport", endpoint.substr(0, endpoint.find(':'))}});
  };
  tell("a turn of the batch, there and back", 1);
  if (batch > 1)
    tell("per step of one environment", static_cast<double>(batch));
}

} // namespace

void bench_remote(const BenchOptions& options, const Report& report) {
  const BenchFolder folder;
  const auto endpoint_of = [&](const std::string& name) {
    return "ipc://" + (folder.path / name).string();
  };
  for (const std::size_t batch : {std::size_t{1}, std::size_t{16}})
    for (const std::string& endpoint :
         {endpoint_of("c++-" + std::to_string(batch)), std::string("tcp://127.0.0.1:*")}) {
      const env::EnvironmentServer server(nullptr, [] { return std::make_unique<IdlePeer>(); },
                                          {.endpoint = endpoint, .environments = batch});
      measure(options, report, "served by C++", server.endpoint(), batch);
    }
  for (const std::size_t batch : {std::size_t{1}, std::size_t{16}}) {
    const std::string endpoint = endpoint_of("python-" + std::to_string(batch));
    const auto server = serve_in_python(endpoint, batch);
    if (!server) {
      std::fprintf(stderr, "troupe: no python3 with numpy and pyzmq in the PATH: the Python server "
                           "is not measured\n");
      return;
    }
    measure(options, report, "served by Python", endpoint, batch);
  }
}

} // namespace troupe::experiments
