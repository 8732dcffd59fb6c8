// libFuzzer target of the snapshots of parameter servers, as checkpoints contain them. The first
// byte is the number of servers that they are spread over; the header of the first of two snapshots
// follows.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "learner/parameter_server/parameter_server.hpp"
#include "learner/parameter_server/parameter_server_snapshot.hpp"
#include "tests/fuzz_seeds.hpp"

namespace {

using namespace troupe::learner;

const ParameterServer::Time kBegin{};
constexpr std::int64_t kElements = 19;

/// The snapshots of two servers after a step of Adam.
const std::vector<TensorMap>& saved() {
  static const std::vector<TensorMap> made = [] {
    const std::map<std::string, double> adam{{"lr", 0.1},   {"beta1", 0.9},      {"beta2", 0.999},
                                             {"eps", 1e-8}, {"weight_decay", 0}, {"amsgrad", 0}};
    std::vector<TensorMap> snapshots;
    for (const auto& segments :
         plan_shards({{.elements = 7}, {.elements = kElements - 7, .group = 1}}, 2)) {
      const std::int64_t elements = elements_of(segments);
      ParameterServer server(ParameterServerOptions{}, kBegin);
      server.begin({.recipe = {.name = "Adam", .groups = {adam, adam}}, .segments = segments},
                   at::arange(elements, at::kFloat));
      server.join(0, 9, kBegin);
      server.push({.worker = 0,
                   .session = 9,
                   .step = 1,
                   .version = 0,
                   .gradient = at::ones({elements}),
                   .present = std::vector<bool>(segments.size(), true)},
                  kBegin);
      snapshots.push_back(server.snapshot());
    }
    return snapshots;
  }();
  return made;
}

/// Every part must restore a server that works, and all parts together the same parameters.
void expect_restored(const std::vector<TensorMap>& parts, const at::Tensor& parameters) {
  std::int64_t elements = 0;
  for (const TensorMap& part : parts) {
    ParameterServer server(ParameterServerOptions{}, kBegin);
    server.restore(part);
    if (!server.join(0, 3, kBegin).empty())
      __builtin_trap();
    elements += server.parameters().numel();
  }
  if (elements != kElements || !reshard(parts, 1).at(0).at("parameters").equal(parameters))
    __builtin_trap();
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const at::Tensor& header = saved()[0].at("header");
  const std::string text(reinterpret_cast<const char*>(header.const_data_ptr<std::uint8_t>()),
                         header.nbytes());
  return {std::string(1, '\0') + text, '\1' + text, '\2' + text};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  auto snapshots = saved();
  auto& header = snapshots[0]["header"];
  header = at::empty({static_cast<std::int64_t>(size) - 1}, at::kByte);
  if (size > 1)
    std::memcpy(header.mutable_data_ptr<std::uint8_t>(), data + 1, size - 1);
  std::vector<TensorMap> parts;
  at::Tensor parameters;
  try {
    parts = reshard(snapshots, 1 + data[0] % 4);
    parameters = reshard(snapshots, 1).at(0).at("parameters");
    expect_restored(parts, parameters);
  } catch (const std::invalid_argument&) {
    return troupe::fuzz_result(false);
  }
  return troupe::fuzz_result(true);
}
