#include "tests/doctest_torch.hpp"

#include <condition_variable>
#include <future>

#include <ATen/ops/ones.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "collectives/backends/checked_backend.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

const ControlMesh::Options kOptions{.host = "127.0.0.1", .timeout = 60s, .connect_timeout = 60s};

/// A backend whose collectives do not end before it is told, as one that missed a peer's end;
/// its end waits for them, as LibTorch's does.
class StuckBackend : public c10d::Backend {
public:
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    bool started = false;
    bool ended = false; // the backend

    void set(bool Gate::*what) {
      const std::lock_guard lock(mutex);
      this->*what = true;
      changed.notify_all();
    }
    bool comes(bool Gate::*what, std::chrono::milliseconds time = 60s) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, time, [&] { return this->*what; });
    }
  };

  explicit StuckBackend(Gate& gate) : Backend(0, 2), gate_(gate) {}
  ~StuckBackend() override {
    gate_.comes(&Gate::open);
    gate_.set(&Gate::ended);
  }

  const std::string getBackendName() const override { return "stuck"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>&,
                                           const c10d::AllreduceOptions&) override {
    gate_.set(&Gate::started);
    return c10::make_intrusive<StuckWork>(gate_);
  }

private:
  class StuckWork : public c10d::Work {
  public:
    explicit StuckWork(Gate& gate) : gate_(gate) {}
    bool isCompleted() override { return gate_.comes(&Gate::open, 0ms); }
    bool wait(std::chrono::milliseconds timeout) override {
      if (!gate_.comes(&Gate::open, timeout == kNoTimeout ? 60s : timeout))
        throw std::runtime_error("Operation timed out!");
      return true;
    }

  private:
    Gate& gate_;
  };

  Gate& gate_;
};

/// Rank 0 of two, whose all-reduce is stuck; rank 1 is a mesh in the test's hands.
struct Pair {
  StuckBackend::Gate gate;
  c10::intrusive_ptr<c10d::HashStore> store = c10::make_intrusive<c10d::HashStore>();
  std::shared_ptr<ControlMesh> peer;
  c10::intrusive_ptr<CheckedBackend> backend;
  std::future<std::string> call;

  explicit Pair(std::chrono::milliseconds goodbye) {
    auto first = std::async(std::launch::async, [this] {
      return std::make_shared<ControlMesh>(*store, 0, 2, kOptions);
    });
    peer = std::make_shared<ControlMesh>(*store, 1, 2, kOptions);
    backend = c10::make_intrusive<CheckedBackend>(
        c10::make_intrusive<StuckBackend>(gate), first.get(),
        CheckedBackend::Options{.name = "stuck", .holds_thread = true, .goodbye = goodbye});
    call = std::async(std::launch::async, [this]() -> std::string {
      std::vector<at::Tensor> tensors{at::ones({3})};
      try {
        backend->allreduce(tensors, {})->wait();
      } catch (const std::exception& error) {
        return error.what();
      }
      return "done";
    });
    peer->agree(fingerprint_of(Kind::all_reduce, at::ones({3}), static_cast<int>(ReduceOp::sum)));
    REQUIRE(gate.comes(&StuckBackend::Gate::started));
  }
};

} // namespace

TEST_CASE("a collective that misses the end of a rank is given up, and so is its backend") {
  Pair pair(300ms);
  pair.peer.reset();
  CHECK(pair.call.get() == "all_reduce #0 (sum float32 [3]): rank 1 died or left");
  pair.backend.reset(); // does not wait
  CHECK_FALSE(pair.gate.comes(&StuckBackend::Gate::ended, 0ms));
  pair.gate.set(&StuckBackend::Gate::open);
  CHECK(pair.gate.comes(&StuckBackend::Gate::ended));
}

TEST_CASE("a rank that leaves after its last collective may be waited for") {
  Pair pair(60s);
  pair.peer.reset();
  CHECK(pair.call.wait_for(500ms) == std::future_status::timeout);
  pair.gate.set(&StuckBackend::Gate::open);
  CHECK(pair.call.get() == "done");
}

TEST_CASE("an abort ends the wait of a collective that is stuck, here and elsewhere") {
  Pair here(60s);
  here.backend->poison("the head says so");
  CHECK(here.call.get() == "the head says so");
  here.gate.set(&StuckBackend::Gate::open);
  Pair elsewhere(60s);
  elsewhere.peer->abort("rank 1 has its reasons");
  CHECK(elsewhere.call.get() == "rank 1 has its reasons");
  elsewhere.gate.set(&StuckBackend::Gate::open);
}

} // namespace troupe::collectives
