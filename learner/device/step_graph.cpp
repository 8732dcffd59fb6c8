#include "learner/device/step_graph.hpp"

#include <algorithm>
#include <stdexcept>

#include "collectives/backends/module_file.hpp"
#include "learner/device/cuda_graph_module.hpp"

namespace troupe::learner {
namespace {

#ifdef TROUPE_CUDA_GRAPH_MODULE
constexpr const char* kWithout = "";
#else
constexpr const char* kWithout = "this build has no CUDA graphs: no CUDA toolkit was found at "
                                 "configure time; install one and configure with -DTROUPE_CUDA=ON";
#endif

const collectives::ModuleFile<CudaGraphModule>& module_file() {
  static const auto loaded =
      collectives::load_module<CudaGraphModule>("troupe_cuda_graph", kWithout);
  return loaded;
}

} // namespace

std::string StepGraph::unavailable_reason(const at::Device& device) {
  if (!device.is_cuda())
    return "CUDA graphs need a GPU, not " + device.str();
  const auto& loaded = module_file();
  if (loaded.module && device.index() >= loaded.module->device_count())
    return device.str() + " is not visible; see nvidia-smi and CUDA_VISIBLE_DEVICES";
  return loaded.reason;
}

StepGraph::StepGraph(const at::Device& device, const std::function<void()>& body) {
  if (const auto reason = unavailable_reason(device); !reason.empty())
    throw std::runtime_error(reason);
  graph_ = module_file().module->capture(std::max<int>(device.index(), 0), body);
}

StepGraph::~StepGraph() {
  module_file().module->destroy(graph_);
}

void StepGraph::replay() {
  module_file().module->replay(graph_);
}

} // namespace troupe::learner
