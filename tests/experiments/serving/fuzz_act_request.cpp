// libFuzzer target of the bodies of requests for actions. The first byte selects the policy, and
// whether the body is bytes or JSON.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiments/serving/act_request.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe;
using namespace troupe::experiments;
using namespace troupe::experiments::serving;

/// A policy whose observation consists of these arrays. It cannot act.
ServedPolicy policy_of(const std::vector<env::ArraySpec>& arrays, int history) {
  PolicyContract contract;
  contract.history = history;
  env::EnvironmentSpec spec;
  spec.observations = arrays;
  for (const env::ArraySpec& array : arrays)
    contract.observations.push_back({.spec = array, .elements = {}});
  spec.frame_stack = history;
  spec.observations[0].shape[0] *= history;
  return {contract, spec, nullptr};
}

void read_all(const web::Request& request, const ServedPolicy& policy) {
  const ActRequest asked = parse_act_request(request);
  if (asked.count() == 0 || asked.count() > kMostObservations
      || asked.session.size() > kLongestLabel || asked.version.size() > kLongestLabel)
    __builtin_trap();
  for (std::size_t i = 0; i < asked.count(); ++i) {
    int frames = 0;
    const auto observation = read_observation(asked, i, policy, frames);
    if (observation.size() != policy.spec().observation_bytes()
        || (frames != 1 && frames != policy.contract().history))
      __builtin_trap();
  }
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const auto one = [](const char* json) { return std::string(1, '\0') + json; };
  const auto several = [](const char* json) { return '\x02' + std::string(json); };
  return {one(R"({"observation": {"state": [0.5, -2]}, "session": "a", "first": true})"),
          one(R"({"observation": [[1, 2], [3, 4], [5, 6]], "version": "b", "last": true})"),
          one(R"({"observations": [[1, 2], {"state": "AACAPwAAAEA="}]})"),
          several(R"({"observation": {"pixels": [0, 255], "count": [-1], "angle": [1e-3]}})"),
          '\x01' + std::string(8, '\x3f'),
          '\x03' + std::string(18, '\x3f')};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  static const ServedPolicy one = policy_of({{.name = "state", .shape = {2}}}, 3);
  static const ServedPolicy several = policy_of({{"pixels", env::ElementType::uint8, {2}},
                                                 {"count", env::ElementType::int64, {1}},
                                                 {"angle", env::ElementType::float64, {1}}},
                                                1);
  web::Request request{.method = "POST",
                       .body = std::string(reinterpret_cast<const char*>(data + 1), size - 1)};
  if (data[0] % 2 == 1)
    request.headers["content-type"] = "application/octet-stream";
  try {
    read_all(request, data[0] / 2 % 2 == 0 ? one : several);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
