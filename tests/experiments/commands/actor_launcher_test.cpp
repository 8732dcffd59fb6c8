#include "tests/doctest_torch.hpp"

#include "experiments/commands/running/actor_launcher.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments::commands;

namespace {

using Words = std::vector<std::string>;

Words variables(const std::vector<int>& gpus, std::vector<const char*> inherited) {
  inherited.push_back(nullptr);
  return role_variables(gpus, inherited.data());
}

} // namespace

TEST_CASE("A role gets the GPUs of its node, in the words of the node's own variable") {
  const char* const home = "HOME=/h";
  CHECK(variables({1}, {home})
        == Words{home, "CUDA_VISIBLE_DEVICES=1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"});
  CHECK(variables({1}, {"CUDA_VISIBLE_DEVICES=4,5", home})
        == Words{home, "CUDA_VISIBLE_DEVICES=5", "CUDA_DEVICE_ORDER=PCI_BUS_ID"});
  CHECK(variables({0, 2}, {"CUDA_VISIBLE_DEVICES=GPU-1f,MIG-2e,GPU-3d"})
        == Words{"CUDA_VISIBLE_DEVICES=GPU-1f,GPU-3d", "CUDA_DEVICE_ORDER=PCI_BUS_ID"});
  // The words keep their meaning.
  const char* const order = "CUDA_DEVICE_ORDER=FASTEST_FIRST";
  CHECK(variables({0}, {order, "CUDA_VISIBLE_DEVICES=3"})
        == Words{order, "CUDA_VISIBLE_DEVICES=3"});
  CHECK(variables({}, {"CUDA_VISIBLE_DEVICES=4,5", home})
        == Words{"CUDA_VISIBLE_DEVICES=4,5", home});
}

TEST_CASE("A role that is assigned a hidden GPU does not start") {
  const std::string problem = error_of([] { variables({0, 2}, {"CUDA_VISIBLE_DEVICES=4,5"}); });
  CHECK(has(problem, "CUDA_VISIBLE_DEVICES is \"4,5\", which has no GPU 2, counted from 0"));
  CHECK(has(error_of([] { variables({0}, {"CUDA_VISIBLE_DEVICES="}); }), "make more GPUs visible"));
}
