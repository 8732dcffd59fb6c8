#include "env/golden/golden_lqr.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "env/physics.hpp"

namespace troupe::env {

namespace {

std::uint32_t recorded_seed(const std::string& folder, const std::string& task) {
  const std::string path = (std::filesystem::path(folder) / "index.json").string();
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error(path + " cannot be opened: the recording of " + task
                             + " needs the seed in it");
  try {
    return nlohmann::json::parse(in).at("tasks").at(task).at("seed").get<std::uint32_t>();
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path + " has no seed for task " + task + ": " + error.what());
  }
}

/// numpy.random.RandomState(seed).random_sample(): 53 bits from two draws.
double uniform(std::mt19937& twister) {
  const double high = static_cast<double>(twister() >> 5);
  const double low = static_cast<double>(twister() >> 6);
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

} // namespace

void set_recorded_springs(Physics& physics, const std::string& folder, const std::string& task) {
  std::mt19937 twister(recorded_seed(folder, task));
  for (double& stiffness : physics.own_array("jnt_stiffness")) {
    stiffness = 15 + 10 * uniform(twister);
    uniform(twister); // the damping, drawn from the range 0 to 0
  }
}

} // namespace troupe::env
