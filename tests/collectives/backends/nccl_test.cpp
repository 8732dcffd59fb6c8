#include "tests/doctest_torch.hpp"

#include <filesystem>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/rendezvous/over_store.hpp"
#include "collectives/timeline.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {

TEST_CASE("NCCL reduces on a GPU or reports why it cannot be used") {
  const auto reason = nccl_unavailable_reason();
  if (!reason.empty()) {
    MESSAGE("skipped: " << reason);
    const auto error = error_of<std::runtime_error>([] { nccl_over_store(0); });
    CHECK(error == "NCCL cannot be used: " + reason);
    return;
  }
  const auto communicator = nccl_over_store(0)(c10::make_intrusive<c10d::HashStore>(), 0, 1, {});
  auto tensor = torch::full({1000}, 3.0, torch::TensorOptions(at::kCUDA));
  communicator->all_reduce(tensor, ReduceOp::mean);
  communicator->broadcast(tensor, 0);
  communicator->barrier();
  CHECK(torch::equal(tensor.cpu(), torch::full({1000}, 3.0)));
  CHECK(communicator->backend() == "nccl");
  const TemporaryFolder folder;
  Timeline timeline(0);
  { const Timeline::Span span(&timeline, "step"); }
  write_timeline({&timeline}, communicator.get(), folder / "trace.json", at::Device(at::kCUDA, 0));
  CHECK(std::filesystem::file_size(folder / "trace.json") > 0);
}

} // namespace troupe::collectives
