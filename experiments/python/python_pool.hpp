#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "env/pool/environment_pool.hpp"
#include "experiments/python/pool_pictures.hpp"
#include "experiments/python/recycled_blocks.hpp"
#include "experiments/python/result_block.hpp"

namespace troupe::python {

/// A pool whose results are NumPy arrays. The arrays of one result share one block of memory, which
/// no later call changes. The block is reused when the last of its arrays has been deleted; arrays
/// may outlive the pool. The interpreter's lock is released while environments play.
///
/// One thread at a time: a second one gets a RuntimeError, and so does a process that was forked
/// after the pool was made. A call that ends early (deadline, Ctrl-C) leaves its request in flight;
/// the next call finishes it first.
class PythonPool {
public:
  /// `bare`: without wrappers; the assignments must then not configure any. `keeps_rows`: resets of
  /// some environments return the other rows as they were, also if the caller has changed the
  /// arrays of the last result, and after load_state().
  PythonPool(const std::vector<std::string>& environment, env::PoolOptions options, bool bare,
             bool keeps_rows);
  ~PythonPool();
  PythonPool(const PythonPool&) = delete;
  PythonPool& operator=(const PythonPool&) = delete;

  pybind11::dict spec() const;
  int environments() const { return pool_->environments(); }
  int threads() const { return threads_; }

  using Indices = pybind11::array_t<std::int32_t, pybind11::array::c_style>;
  using Seeds = pybind11::array_t<std::uint64_t, pybind11::array::c_style>;

  void seed(const Indices& environments, const Seeds& seeds);
  /// Resets `environments` and returns the results of all environments. With `keeps_rows`, only the
  /// observations and discounts of the others are meaningful.
  pybind11::tuple reset(const Indices& environments, double deadline_seconds);
  pybind11::tuple step(const pybind11::array& actions, double deadline_seconds);
  void send_reset(const Indices& environments);
  void send(const Indices& environments, const pybind11::array& actions);
  pybind11::tuple receive(std::size_t rows, double deadline_seconds);
  std::size_t in_flight();

  /// Draws the present states of the first `count` environments: [count, height, width, …].
  pybind11::array pictures(int count, PictureKind kind, int height, int width,
                           const std::string& camera);
  std::string error(int environment);
  bool in_service(int environment);
  pybind11::bytes save_state();
  void load_state(const pybind11::bytes& state);

private:
  /// The results of `rows` environments in one block.
  struct Results : ResultParts {
    std::shared_ptr<std::byte> block;
  };
  /// The rows of all environments that a reset of some leaves unchanged; empty if they are unknown.
  struct Rows {
    std::vector<std::byte> observations;
    std::vector<double> discounts;
  };
  class Use;

  Results results(std::size_t rows);
  pybind11::tuple arrays_of(const Results& results) const;
  template <typename Start>
  pybind11::tuple play(Results results, double deadline_seconds, const Start& start);
  bool finish_in_slices(env::EnvironmentPool::Clock::time_point deadline);
  void finish_earlier(env::EnvironmentPool::Clock::time_point deadline, double deadline_seconds);
  void finish_earlier(); // for calls without a deadline
  void take_finished();
  void put_present_rows(const Results& into) const;
  template <typename Do>
  auto with_actions(const pybind11::array& actions, std::size_t rows, const Do& act);

  env::EnvironmentSpec spec_;
  std::unique_ptr<env::EnvironmentPool> pool_;
  int threads_ = 1;
  bool renders_ = false; // whether there is physics to draw
  std::size_t row_bytes_ = 0;
  RecycledBlocks blocks_;
  bool keeps_rows_ = false;
  Rows kept_;          // with keeps_rows_; otherwise they are in last_, the caller's arrays
  Results last_;       // of all environments
  Results unfinished_; // of a request in flight
  PoolPictures pictures_;
  pid_t process_ = getpid();
  std::mutex mutex_;
};

} // namespace troupe::python
