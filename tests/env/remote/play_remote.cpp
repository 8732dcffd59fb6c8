#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "env/remote/remote_environment.hpp"

using namespace troupe::env;

namespace {

void print(const RemoteEnvironments& remote, const std::vector<TimeStep>& steps,
           const std::vector<std::byte>& observations) {
  const std::size_t row = remote.spec().observation_bytes();
  for (std::size_t i = 0; i < remote.size(); ++i) {
    std::printf("%d %a %a", static_cast<int>(steps[i].step_type), steps[i].reward,
                steps[i].discount);
    for (std::size_t k = 0; k < row / sizeof(double); ++k) {
      double value = 0;
      std::memcpy(&value, observations.data() + i * row + k * sizeof value, sizeof value);
      std::printf(" %a", value);
    }
    std::printf(" %s\n", remote.failure(i).c_str());
  }
}

} // namespace

/// play_remote ENDPOINT COUNT STEPS [SECRET_KEY SERVER_KEY]: plays float64 environments with
/// actions that the caller can compute, too. With x = 7 i + 3 t + 5 k for environment i, step t and
/// dimension k, a choice of n is x mod n and a continuous number is (x mod 17) / 8 - 1. Prints one
/// line per environment and step: type, reward, discount, observation, failure.
int main(int argc, char** argv) {
  if (argc != 4 && argc != 6)
    return 2;
  try {
    RemoteOptions options{.endpoint = argv[1], .environments = std::stoul(argv[2])};
    if (argc == 6)
      options.keys = wire::read_client_keys(argv[4], argv[5]);
    RemoteEnvironments remote(options);
    const std::size_t size = remote.spec().action.size();
    std::vector<TimeStep> steps(remote.size());
    std::vector<std::byte> observations(remote.size() * remote.spec().observation_bytes());
    const RemoteResults results{.steps = steps, .observations = observations};
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < remote.size(); ++i)
      turns.push_back({.kind = Turn::Kind::reset, .seed = 10 + i});
    remote.play(turns, {}, results);
    print(remote, steps, observations);
    std::vector<double> actions(remote.size() * size);
    for (std::size_t t = 0; t < std::stoul(argv[3]); ++t) {
      for (std::size_t i = 0; i < remote.size(); ++i)
        for (std::size_t k = 0; k < size; ++k) {
          const std::size_t x = 7 * i + 3 * t + 5 * k;
          const auto n = static_cast<std::size_t>(remote.spec().action.choices_of(k));
          actions[i * size + k] =
              n != 0 ? static_cast<double>(x % n) : static_cast<double>(x % 17) / 8 - 1;
        }
      remote.step(actions, results);
      print(remote, steps, observations);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "play_remote: %s\n", error.what());
    return 1;
  }
  return 0;
}
