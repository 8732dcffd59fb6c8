#include "collectives/backends/async_backend.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <pthread.h>

namespace troupe::collectives {
namespace {

class QueuedWork : public c10d::Work {
public:
  explicit QueuedWork(std::vector<at::Tensor> result)
      : result_(std::move(result)),
        future_(c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()))) {}

  std::vector<at::Tensor> result() override { return result_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  bool wait(std::chrono::milliseconds timeout) override {
    Work::wait(timeout);
    future_->wait(); // it is about to complete, so a waiting caller finds both complete
    return true;
  }

  void end(const std::exception_ptr& error) {
    finish(error);
    if (error)
      future_->setError(error);
    else
      future_->markCompleted(c10::IValue(result_));
  }

private:
  std::vector<at::Tensor> result_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace

struct AsyncBackend::Queue {
  struct Item {
    c10::intrusive_ptr<QueuedWork> work;
    std::function<Work()> call;
  };

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Item> items;
  bool busy = false; // executing an item that is no longer in `items`

  void run(const std::stop_token& stop) {
    const at::NoGradGuard guard; // calls on this thread record no gradients
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, stop, [this] { return !items.empty(); });
      if (items.empty())
        return;
      auto item = std::move(items.front());
      items.pop_front();
      busy = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        item.call()->wait();
      } catch (...) {
        error = std::current_exception();
      }
      item.call = nullptr; // release its tensors before any callback runs
      lock.lock();
      busy = false;
      changed.notify_all();
      lock.unlock();
      item.work->end(error);
      item.work.reset();
      lock.lock();
    }
  }

  void push(Item item) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return items.size() < kMostQueued; });
    items.push_back(std::move(item));
    changed.notify_all();
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return items.empty() && !busy; });
  }
};

AsyncBackend::AsyncBackend(c10::intrusive_ptr<GuardedBackend> inner)
    : Backend(inner->getRank(), inner->getSize()),
      inner_(std::move(inner)),
      queue_(std::make_shared<Queue>()),
      thread_([queue = queue_](const std::stop_token& stop) { queue->run(stop); }) {
  pthread_setname_np(thread_.native_handle(), "collectives");
}

AsyncBackend::~AsyncBackend() {
  if (thread_.get_id() != std::this_thread::get_id())
    return; // thread_'s destructor stops the thread, which first completes the queued calls
  thread_.request_stop();
  thread_.detach(); // a callback of a future held the last reference
}

void AsyncBackend::wait_until_idle() {
  queue_->wait_until_idle();
}

template <class Call, class... Arguments>
AsyncBackend::Work AsyncBackend::submit(std::vector<at::Tensor> result, Call call,
                                        const Arguments&... arguments) {
  auto work = c10::make_intrusive<QueuedWork>(std::move(result));
  queue_->push({work, [inner = inner_, call, ... copies = arguments]() mutable {
                  return ((*inner).*call)(copies...);
                }});
  return work;
}

AsyncBackend::Work AsyncBackend::allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) {
  return submit(tensors, &Backend::allreduce, tensors, options);
}

AsyncBackend::Work
AsyncBackend::allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                  const c10d::AllreduceCoalescedOptions& options) {
  return submit(tensors, &Backend::allreduce_coalesced, tensors, options);
}

AsyncBackend::Work AsyncBackend::reduce(std::vector<at::Tensor>& tensors,
                                        const c10d::ReduceOptions& options) {
  return submit(tensors, &Backend::reduce, tensors, options);
}

AsyncBackend::Work AsyncBackend::broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) {
  return submit(tensors, &Backend::broadcast, tensors, options);
}

AsyncBackend::Work AsyncBackend::allgather(std::vector<std::vector<at::Tensor>>& outputs,
                                           std::vector<at::Tensor>& inputs,
                                           const c10d::AllgatherOptions& options) {
  return submit(outputs.empty() ? std::vector<at::Tensor>() : outputs[0], &Backend::allgather,
                outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                 const c10d::AllgatherOptions& options) {
  return submit({output}, &Backend::_allgather_base, output, input, options);
}

AsyncBackend::Work AsyncBackend::allgather_coalesced(std::vector<std::vector<at::Tensor>>& outputs,
                                                     std::vector<at::Tensor>& inputs,
                                                     const c10d::AllgatherOptions& options) {
  std::vector<at::Tensor> result;
  for (const auto& list : outputs)
    result.insert(result.end(), list.begin(), list.end());
  return submit(std::move(result), &Backend::allgather_coalesced, outputs, inputs, options);
}

AsyncBackend::Work
AsyncBackend::allgather_into_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                              std::vector<at::Tensor>& inputs,
                                              const c10d::AllgatherOptions& options) {
  return submit(outputs, &Backend::allgather_into_tensor_coalesced, outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::gather(std::vector<std::vector<at::Tensor>>& outputs,
                                        std::vector<at::Tensor>& inputs,
                                        const c10d::GatherOptions& options) {
  return submit(outputs.empty() ? std::vector<at::Tensor>() : outputs[0], &Backend::gather, outputs,
                inputs, options);
}

AsyncBackend::Work AsyncBackend::scatter(std::vector<at::Tensor>& outputs,
                                         std::vector<std::vector<at::Tensor>>& inputs,
                                         const c10d::ScatterOptions& options) {
  return submit(outputs, &Backend::scatter, outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::reduce_scatter(std::vector<at::Tensor>& outputs,
                                                std::vector<std::vector<at::Tensor>>& inputs,
                                                const c10d::ReduceScatterOptions& options) {
  return submit(outputs, &Backend::reduce_scatter, outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                      const c10d::ReduceScatterOptions& options) {
  return submit({output}, &Backend::_reduce_scatter_base, output, input, options);
}

AsyncBackend::Work
AsyncBackend::reduce_scatter_tensor_coalesced(std::vector<at::Tensor>& outputs,
                                              std::vector<at::Tensor>& inputs,
                                              const c10d::ReduceScatterOptions& options) {
  return submit(outputs, &Backend::reduce_scatter_tensor_coalesced, outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::alltoall(std::vector<at::Tensor>& outputs,
                                          std::vector<at::Tensor>& inputs,
                                          const c10d::AllToAllOptions& options) {
  return submit(outputs, &Backend::alltoall, outputs, inputs, options);
}

AsyncBackend::Work AsyncBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                               std::vector<int64_t>& output_splits,
                                               std::vector<int64_t>& input_splits,
                                               const c10d::AllToAllOptions& options) {
  return submit({output}, &Backend::alltoall_base, output, input, output_splits, input_splits,
                options);
}

AsyncBackend::Work AsyncBackend::barrier(const c10d::BarrierOptions& options) {
  return submit({}, &Backend::barrier, options);
}

} // namespace troupe::collectives
