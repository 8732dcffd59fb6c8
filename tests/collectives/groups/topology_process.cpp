// The same small program for every backend and launcher. Its argument names the backend.
#include <cstdio>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "collectives/groups/make_communicator.hpp"

int main(int count, char** arguments) {
  using namespace troupe::collectives;
  if (count != 2)
    return 2;
  at::set_num_threads(1);
  try {
    const auto place = topology_of_this_process();
    CommunicatorOptions options;
    options.connect_timeout = options.timeout = std::chrono::seconds(30);
    const auto communicator = make_communicator(arguments[1], place, options);
    auto tensor = torch::full({10'000}, place.rank + 1.0);
    communicator->all_reduce(tensor, ReduceOp::mean);
    const auto ranks = communicator->all_gather(torch::full({1}, place.rank, at::kLong));
    bool right = communicator->rank() == place.rank && communicator->size() == place.size
                 && torch::allclose(tensor, torch::full({10'000}, (place.size + 1) / 2.0));
    for (int rank = 0; rank < place.size; ++rank)
      right = right && ranks[static_cast<std::size_t>(rank)].item<std::int64_t>() == rank;
    communicator->barrier();
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
