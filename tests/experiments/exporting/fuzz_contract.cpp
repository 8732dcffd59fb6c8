// libFuzzer target of the contract files that an exported policy is compared with.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/exporting/contract.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

namespace {

using namespace troupe::experiments;

PolicyContract contract_with(int history) {
  PolicyContract made;
  made.task = "reacher_easy";
  made.observations.push_back(
      {.spec = {.name = "state", .shape = {2}},
       .elements = {{.name = "angle", .unit = "rad"}, {.name = "speed", .unit = "rad/s"}},
       .mean = {0.5, 0},
       .deviation = {1, 2}});
  made.actions = {{.name = "torque", .unit = "N m", .minimum = -1, .maximum = 1},
                  {.name = "gear", .unit = "choice", .maximum = 2, .choices = 3}};
  made.joints = {{.name = "shoulder", .kind = "hinge", .unit = "rad"}};
  made.history = history;
  made.control_period_seconds = 0.02;
  made.scales.resize(2);
  return made;
}

bool accepts(const PolicyContract& contract, const std::filesystem::path& file) {
  try {
    check_contract(contract, file);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  return {contract_text(contract_with(1)), contract_text(contract_with(2))};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const troupe::TemporaryFolder folder(troupe::kMemoryFolder);
  static const PolicyContract one = contract_with(1), two = contract_with(2);
  const auto file = folder / "contract.json";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const bool fits_one = accepts(one, file);
  const bool fits_two = accepts(two, file);
  if (fits_one && fits_two)
    __builtin_trap(); // the policies need a different history
  return troupe::fuzz_result(fits_one || fits_two);
}
