// Ranks are threads, and collectives are the only component.
#include <thread>

#include <torch/types.h>

#include <collectives/communicator.hpp>

int main() {
  auto communicators = troupe::collectives::make_thread_communicators(3);
  std::vector<double> means(3);
  {
    std::vector<std::jthread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&] {
        auto tensor = torch::full({4}, communicator->rank(), at::kDouble);
        communicator->all_reduce(tensor, troupe::collectives::ReduceOp::mean);
        means[static_cast<std::size_t>(communicator->rank())] = tensor[0].item<double>();
      });
  }
  return means == std::vector<double>{1, 1, 1} ? 0 : 1;
}
