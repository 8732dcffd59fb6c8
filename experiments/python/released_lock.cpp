#include "experiments/python/released_lock.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace py = pybind11;

namespace troupe::python {
namespace {

constexpr std::chrono::seconds kLongestWaitAtExit{10};

struct Exit {
  std::atomic<bool> begun = false;
  std::atomic<int> released = 0; // number of threads that have released the interpreter's lock
};

Exit& interpreter_exit() {
  static Exit state;
  return state;
}

} // namespace

ReleasedLock::ReleasedLock() {
  if (interpreter_exit().begun)
    return;
  ++interpreter_exit().released;
  state_ = PyEval_SaveThread();
}

ReleasedLock::~ReleasedLock() {
  if (state_ == nullptr)
    return;
  PyEval_RestoreThread(state_);
  --interpreter_exit().released;
}

bool ReleasedLock::exit_begun() {
  return interpreter_exit().begun;
}

void ReleasedLock::watch_exit() {
  py::module_::import("atexit").attr("register")(py::cpp_function([] {
    interpreter_exit().begun = true;
    const auto late = std::chrono::steady_clock::now() + kLongestWaitAtExit;
    PyThreadState* state = PyEval_SaveThread();
    while (interpreter_exit().released > 0 && std::chrono::steady_clock::now() < late)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
  }));
}

} // namespace troupe::python
