#include "tests/doctest_torch.hpp"

#include <future>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/backends/checked_backend.hpp"
#include "tests/text.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

const CommunicatorOptions kMeshOptions{.timeout = 20s, .connect_timeout = 20s};

/// A LibTorch backend whose all-reduce and barrier fail, either at once or during the wait.
class FailingBackend : public c10d::Backend {
public:
  explicit FailingBackend(bool at_once) : Backend(0, 2), at_once_(at_once) {}

  const std::string getBackendName() const override { return "failing"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&,
                                           const c10d::AllreduceOptions&) override {
    return fail();
  }
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions&) override { return fail(); }

private:
  c10::intrusive_ptr<c10d::Work> fail() const {
    if (at_once_)
      throw std::runtime_error("no memory\nwith a page of stack");
    return c10::make_intrusive<FailingWork>();
  }
  struct FailingWork : c10d::Work {
    bool wait(std::chrono::milliseconds) override {
      throw std::runtime_error("the wire broke\nwith a page of stack");
    }
  };
  bool at_once_;
};

/// A LibTorch backend that counts its exchanges.
class CountingBackend : public c10d::Backend {
public:
  CountingBackend() : Backend(0, 2) {}

  const std::string getBackendName() const override { return "counting"; }
  c10::intrusive_ptr<c10d::Work> alltoall_base(at::Tensor& output, at::Tensor&,
                                               std::vector<int64_t>&, std::vector<int64_t>&,
                                               const c10d::AllToAllOptions&) override {
    ++exchanges;
    return done_work({output});
  }

  int exchanges = 0;
};

} // namespace

TEST_CASE("A failure of LibTorch's backend is reported with its call on every rank") {
  for (const bool at_once : {true, false})
    for (const bool barrier : {false, true}) {
      const auto store = c10::make_intrusive<c10d::HashStore>();
      auto peer = std::async(std::launch::async, [&] {
        ControlMesh mesh(*store, 1, 2, kMeshOptions);
        mesh.agree(barrier ? Fingerprint{}
                           : fingerprint_of(Kind::all_reduce, at::ones({3}),
                                            static_cast<int>(ReduceOp::sum)));
        // answers, so as not to be considered dead
        return error_of<CollectiveError>([&] { mesh.agree({}); });
      });
      CheckedBackend backend(c10::make_intrusive<FailingBackend>(at_once),
                             std::make_shared<ControlMesh>(*store, 0, 2, kMeshOptions), at::kCPU);
      std::vector<at::Tensor> tensors{at::ones({3})};
      const auto error = error_of<CollectiveError>(
          [&] { (barrier ? backend.barrier({}) : backend.allreduce(tensors, {}))->wait(); });
      CHECK(error
            == std::string(barrier ? "barrier #0" : "all_reduce #0 (sum float32 [3])")
                   + " failed on rank 0: " + (at_once ? "no memory" : "the wire broke"));
      CHECK(peer.get() == error);
    }
}

TEST_CASE("A rank that receives nothing in an uneven exchange still sends its rows") {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  auto peer = std::async(std::launch::async, [&] {
    ControlMesh mesh(*store, 1, 2, kMeshOptions);
    auto call = fingerprint_of(Kind::all_to_all, at::ones({3}));
    call.dimensions = Fingerprint::kNoShape;
    call.shape = {};
    mesh.agree(call);
  });
  const auto inner = c10::make_intrusive<CountingBackend>();
  CheckedBackend backend(inner, std::make_shared<ControlMesh>(*store, 0, 2, kMeshOptions),
                         at::kCPU);
  auto input = at::ones({3});
  auto output = at::empty({0});
  std::vector<int64_t> takes{0, 0}, gives{0, 3};
  backend.alltoall_base(output, input, takes, gives, {})->wait();
  peer.get();
  CHECK(inner->exchanges == 1);
}

} // namespace troupe::collectives
