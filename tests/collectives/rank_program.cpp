// One rank of a group of processes, for tests of faults:
//   rank_program BACKEND PORT RANK SIZE TIMEOUT_MS CALL...
// BACKEND: shared_memory or tcp. CALL: sum:N, mean:N, long:N (an all_reduce of N elements),
// barrier, or loop:N (sums forever). Prints "running" after the first call, then "done" or the
// error, and exits without cleaning up, like a program that ends with an error.
#include <cstdlib>
#include <iostream>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "collectives/communicator.hpp"

namespace {

using namespace troupe::collectives;

void call(Communicator& communicator, const std::string& text) {
  const auto colon = text.find(':');
  const auto kind = text.substr(0, colon);
  const auto count = colon == std::string::npos ? 0 : std::atoll(text.c_str() + colon + 1);
  if (kind == "barrier")
    return communicator.barrier();
  auto tensor = torch::ones({count}, kind == "long" ? at::kLong : at::kFloat);
  do {
    communicator.all_reduce(tensor, kind == "mean" ? ReduceOp::mean : ReduceOp::sum);
    if (tensor.ne(kind == "mean" ? 1 : communicator.size()).any().item<bool>())
      throw std::logic_error("a wrong sum");
    tensor.fill_(1);
  } while (kind == "loop");
}

} // namespace

int main(int count, char** words) {
  if (count < 7)
    return 2;
  const int port = std::atoi(words[2]), rank = std::atoi(words[3]), size = std::atoi(words[4]);
  CommunicatorOptions options;
  options.timeout = std::chrono::milliseconds(std::atoi(words[5]));
  try {
    at::set_num_threads(1);
    const auto communicator =
        std::string(words[1]) == "tcp"
            ? make_tcp_communicator("127.0.0.1", port, rank, size, options)
            : make_shared_memory_communicator("127.0.0.1", port, rank, size, options);
    communicator->barrier();
    std::cout << "running" << std::endl;
    for (int i = 6; i < count; ++i)
      call(*communicator, words[i]);
    std::cout << "done" << std::endl;
  } catch (const CollectiveError& error) {
    std::cout << error.what() << std::endl;
    std::_Exit(3);
  } catch (const std::exception& error) {
    std::cout << "not a CollectiveError: " << error.what() << std::endl;
    std::_Exit(4);
  }
}
