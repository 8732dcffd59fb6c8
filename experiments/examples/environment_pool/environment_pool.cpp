// Many environments stepped by a few threads, in C++ only.
//   environment_pool [TASK [ENVIRONMENTS [THREADS [STEPS]]]]
// First steps all environments together, like a vector environment; then each one as soon as its
// result is ready, so that a slow one does not delay the others. Actions are random.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include <env/pool/environment_pool.hpp>
#include <env/random.hpp>

namespace {

using namespace troupe::env;
using Clock = EnvironmentPool::Clock;

/// One action for each of `rows` environments, [rows, size].
std::vector<double> random_actions(const ActionSpec& action, std::size_t rows, Random& random) {
  std::vector<double> out;
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < action.size(); ++i) {
      const auto choices = static_cast<double>(action.choices_of(i));
      out.push_back(choices > 0 ? std::floor(random.uniform(0, choices))
                                : random.uniform(action.minimum[i], action.maximum[i]));
    }
  return out;
}

void print(const char* mode, std::int64_t steps, std::int64_t episodes, Clock::time_point begin) {
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  std::printf("%s: %.0f steps/s, %lld episodes ended\n", mode,
              static_cast<double>(steps) / seconds.count(), static_cast<long long>(episodes));
}

bool late() {
  std::fprintf(stderr, "an environment gave no result within the deadline\n");
  return false;
}

bool play_together(EnvironmentPool& pool, std::int64_t steps, Random& random) {
  const auto environments = static_cast<std::size_t>(pool.environments());
  std::vector<std::int32_t> all(environments);
  std::iota(all.begin(), all.end(), 0);
  PoolRows rows(pool.spec(), environments); // row i is environment i
  const auto begin = Clock::now();
  const auto deadline = begin + std::chrono::minutes(1);
  std::int64_t episodes = 0;
  if (!pool.reset(all, rows.batch(), deadline))
    return late();
  for (std::int64_t step = 0; step < steps; ++step) {
    // An agent would use rows.observation(i), the observation in row i, here.
    const auto actions = random_actions(pool.spec().action, environments, random);
    if (!pool.step(actions, rows.batch(), deadline))
      return late();
    for (const StepType type : rows.step_types)
      episodes += type == StepType::last ? 1 : 0; // its next step begins the next episode
  }
  print("together", steps * pool.environments(), episodes, begin);
  return true;
}

bool play_apart(EnvironmentPool& pool, std::int64_t steps, Random& random) {
  const auto environments = static_cast<std::size_t>(pool.environments());
  const std::size_t half = (environments + 1) / 2;
  PoolRows rows(pool.spec(), half); // the first results, from any environments
  std::vector<std::int32_t> all(environments);
  std::iota(all.begin(), all.end(), 0);
  const auto begin = Clock::now();
  const auto deadline = begin + std::chrono::minutes(1);
  std::int64_t episodes = 0;
  std::int64_t received = 0;
  pool.send_reset(all);
  while (received < steps * pool.environments()) {
    if (!pool.receive(rows.batch(), deadline))
      return late();
    received += static_cast<std::int64_t>(half);
    for (const StepType type : rows.step_types)
      episodes += type == StepType::last ? 1 : 0;
    pool.send(rows.environments, random_actions(pool.spec().action, half, random));
  }
  print("apart", received, episodes, begin);
  return true;
}

} // namespace

int main(int argc, char** argv) {
  try {
    const std::string task = argc > 1 ? argv[1] : "HalfCheetah-v5";
    const PoolOptions options{.environments = argc > 2 ? std::stoi(argv[2]) : 8,
                              .threads = argc > 3 ? std::stoi(argv[3]) : 2};
    const std::int64_t steps = argc > 4 ? std::stoll(argv[4]) : 1000; // for each environment
    EnvironmentPool pool(options, EnvironmentConfig{.task = task});
    const EnvironmentSpec& spec = pool.spec();
    std::printf("%s: observations of %zu bytes, actions of %zu numbers\n", spec.name.c_str(),
                spec.observation_bytes(), spec.action.size());
    Random random(options.seed);
    return play_together(pool, steps, random) && play_apart(pool, steps, random) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
