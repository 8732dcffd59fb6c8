#include "experiments/python/python_pool.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "env/make/make.hpp"
#include "experiments/config/environment_keys.hpp"
#include "experiments/python/config_mistakes.hpp"
#include "experiments/python/deadlines.hpp"
#include "experiments/python/element_types.hpp"
#include "experiments/python/released_lock.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

constexpr std::chrono::milliseconds kSliceOfWait{200}; // until the next check for Ctrl-C
constexpr double kPatience = 60; // seconds, of calls without a deadline of their own

env::EnvironmentConfig checked_environment(const std::vector<std::string>& assignments) {
  try {
    return experiments::environment_of_keys(assignments);
  } catch (const experiments::ConfigError& error) {
    throw_all(error);
  }
}

/// OpenGL draws on the thread that made its context, and an environment from a plug-in may need a
/// fixed thread. All others may play on any thread.
void choose_threads(const env::EnvironmentConfig& config, env::PoolOptions& options) {
  const bool opengl = config.pixels && config.pixels->renderer == env::RendererKind::opengl;
  if (!opengl && config.plugin.empty())
    options.binding = env::PoolThreads::shared;
  else
    options.caller_plays = false; // Python may call from any thread
}

[[noreturn]] void time_out(const char* what, double seconds) {
  const std::string text = std::string(what) + " takes longer than the deadline of "
                           + std::to_string(seconds)
                           + " s; the next call waits for it first, so call again, or with a later "
                             "deadline";
  PyErr_SetString(PyExc_TimeoutError, text.c_str());
  throw py::error_already_set();
}

template <typename T>
py::array array_of(std::span<T> values, const py::dtype& type, const py::handle& owner) {
  return py::array(type, {static_cast<py::ssize_t>(values.size())},
                   {static_cast<py::ssize_t>(sizeof(T))}, values.data(), owner);
}

} // namespace

/// Holds the pool for one call.
class PythonPool::Use {
public:
  explicit Use(PythonPool& pool) : lock_(pool.mutex_, std::try_to_lock) {
    if (!lock_.owns_lock())
      throw std::runtime_error(
          "the pool is in use by another thread; give each its own, or put a lock around it");
    if (pool.process_ != getpid())
      throw std::runtime_error("the pool belongs to process " + std::to_string(pool.process_)
                               + " and this is a fork of it, " + std::to_string(getpid())
                               + ", without its threads; make the pool after the fork");
  }

private:
  std::unique_lock<std::mutex> lock_;
};

PythonPool::PythonPool(const std::vector<std::string>& environment, env::PoolOptions options,
                       bool bare, bool keeps_rows)
    : blocks_(1), keeps_rows_(keeps_rows) {
  const ReleasedLock released;
  const env::EnvironmentConfig config = checked_environment(environment);
  choose_threads(config, options);
  pool_ = std::make_unique<env::EnvironmentPool>(
      options, [&](int) { return bare ? env::make_bare(config) : env::make_environment(config); });
  spec_ = pool_->spec();
  threads_ = options.threads;
  renders_ = pool_->physics(0) != nullptr;
  row_bytes_ = spec_.observation_bytes();
  blocks_ = RecycledBlocks(
      result_parts(nullptr, row_bytes_, static_cast<std::size_t>(options.environments)).bytes);
}

PythonPool::~PythonPool() {
  if (process_ != getpid()) { // in a fork its threads do not exist and cannot be joined
    static_cast<void>(pool_.release());
    return;
  }
  const ReleasedLock released;
  pool_.reset();
}

py::dict PythonPool::spec() const {
  py::list arrays;
  for (std::size_t i = 0; i < spec_.observations.size(); ++i) {
    const env::ArraySpec& array = spec_.observations[i];
    arrays.append(
        py::make_tuple(array.name, dtype_of(array.type), py::tuple(py::cast(array.shape))));
  }
  py::dict out;
  out["name"] = spec_.name;
  out["observations"] = arrays;
  out["action_minimum"] = py::cast(spec_.action.minimum);
  out["action_maximum"] = py::cast(spec_.action.maximum);
  out["action_choices"] = py::cast(spec_.action.choices);
  out["episode_steps"] = spec_.episode_steps;
  out["action_repeat"] = spec_.action_repeat;
  out["frame_stack"] = spec_.frame_stack;
  out["control_timestep_seconds"] = spec_.control_timestep_seconds;
  out["saves_state"] = spec_.saves_state;
  out["renders"] = renders_;
  return out;
}

PythonPool::Results PythonPool::results(std::size_t rows) {
  Results out;
  out.block = blocks_.take();
  static_cast<ResultParts&>(out) = result_parts(out.block.get(), row_bytes_, rows);
  return out;
}

py::tuple PythonPool::arrays_of(const Results& from) const {
  const std::size_t rows = from.batch.rows();
  for (std::size_t i = 0; i < rows; ++i) {
    const bool last = from.batch.step_types[i] == env::StepType::last;
    const bool terminated = last && from.batch.discounts[i] == 0;
    from.terminated[i] = terminated ? 1 : 0;
    from.truncated[i] = last && !terminated ? 1 : 0;
  }
  const py::capsule owner(new std::shared_ptr<std::byte>(from.block), [](void* held) {
    delete static_cast<std::shared_ptr<std::byte>*>(held);
  });
  py::tuple observations(spec_.observations.size());
  for (std::size_t i = 0; i < spec_.observations.size(); ++i) {
    const env::ArraySpec& array = spec_.observations[i];
    std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(rows)};
    shape.insert(shape.end(), array.shape.begin(), array.shape.end());
    std::vector<py::ssize_t> strides(shape.size());
    auto stride = static_cast<py::ssize_t>(env::element_bytes(array.type));
    for (std::size_t k = shape.size(); k-- > 1; stride *= shape[k])
      strides[k] = stride;
    strides[0] = static_cast<py::ssize_t>(row_bytes_);
    observations[i] =
        py::array(dtype_of(array.type), shape, strides,
                  from.batch.observations.data() + spec_.observation_offset(i), owner);
  }
  const auto boolean = py::dtype::of<bool>();
  const auto byte = py::dtype::of<std::uint8_t>();
  const auto number = py::dtype::of<double>();
  return py::make_tuple(
      observations, array_of(from.batch.rewards, number, owner),
      array_of(from.terminated, boolean, owner), array_of(from.truncated, boolean, owner),
      array_of(from.batch.discounts, number, owner), array_of(from.batch.step_types, byte, owner),
      array_of(from.batch.statuses, byte, owner),
      array_of(from.batch.environments, py::dtype::of<std::int32_t>(), owner),
      array_of(from.batch.episode_steps, py::dtype::of<std::int64_t>(), owner),
      array_of(from.batch.episode_returns, number, owner));
}

/// Waits for a request in flight and checks for Ctrl-C. Call it with the interpreter's lock held.
bool PythonPool::finish_in_slices(Clock::time_point deadline) {
  for (;;) {
    bool finished = false;
    {
      const ReleasedLock released;
      finished = pool_->finish(std::min(deadline, Clock::now() + kSliceOfWait));
    }
    if (finished || Clock::now() >= deadline)
      return finished;
    if (PyErr_CheckSignals() != 0)
      throw py::error_already_set();
  }
}

template <typename Start>
py::tuple PythonPool::play(Results into, double deadline_seconds, const Start& start) {
  const Clock::time_point deadline = deadline_in(deadline_seconds);
  finish_earlier(deadline, deadline_seconds);
  unfinished_ = std::move(into);
  bool finished = false;
  try {
    const ReleasedLock released;
    finished = start(unfinished_.batch, std::min(deadline, Clock::now() + kSliceOfWait));
  } catch (...) {
    unfinished_ = {};
    throw;
  }
  if (!finished && !finish_in_slices(deadline))
    time_out("the reset or step", deadline_seconds);
  take_finished();
  return arrays_of(last_);
}

void PythonPool::finish_earlier(Clock::time_point deadline, double deadline_seconds) {
  if (unfinished_.block == nullptr)
    return;
  if (!finish_in_slices(deadline))
    time_out("an earlier reset or step", deadline_seconds);
  take_finished();
}

void PythonPool::take_finished() {
  last_ = std::move(unfinished_);
  unfinished_ = {};
  if (!keeps_rows_)
    return;
  const env::PoolBatch& batch = last_.batch;
  kept_.observations.assign(batch.observations.begin(), batch.observations.end());
  kept_.discounts.assign(batch.discounts.begin(), batch.discounts.end());
}

/// Prepares the results of a reset of some environments.
void PythonPool::put_present_rows(const Results& into) const {
  if (keeps_rows_ ? kept_.discounts.empty() : last_.block == nullptr)
    throw std::invalid_argument("the first reset, or the first one after load_state() of a state "
                                "without rows, must be of all environments");
  if (!keeps_rows_) {
    std::memcpy(into.block.get(), last_.block.get(), last_.bytes);
    return;
  }
  std::memset(into.block.get(), 0, into.bytes);
  std::copy(kept_.observations.begin(), kept_.observations.end(), into.batch.observations.begin());
  std::copy(kept_.discounts.begin(), kept_.discounts.end(), into.batch.discounts.begin());
}

void PythonPool::finish_earlier() {
  finish_earlier(deadline_in(kPatience), kPatience);
}

py::tuple PythonPool::reset(const Indices& environments, double deadline_seconds) {
  const Use use(*this);
  const std::span<const std::int32_t> chosen(environments.data(),
                                             static_cast<std::size_t>(environments.size()));
  const auto all = static_cast<std::size_t>(pool_->environments());
  Results into = results(all);
  if (chosen.size() < all) {
    finish_earlier(deadline_in(deadline_seconds), deadline_seconds);
    put_present_rows(into);
  }
  return play(std::move(into), deadline_seconds,
              [&](const env::PoolBatch& batch, Clock::time_point deadline) {
                return pool_->reset(chosen, batch, deadline);
              });
}

/// Calls `act` with the numbers of `actions`, as float if they are, otherwise as double.
template <typename Do>
auto PythonPool::with_actions(const py::array& actions, std::size_t rows, const Do& act) {
  const std::size_t size = rows * spec_.action.size();
  if (static_cast<std::size_t>(actions.size()) != size)
    throw std::invalid_argument("actions are of " + std::to_string(actions.size())
                                + " numbers; they must be of " + std::to_string(size) + ", "
                                + std::to_string(spec_.action.size()) + " for each of "
                                + std::to_string(rows) + " environments");
  using Floats = py::array_t<float, py::array::c_style>;
  if (py::isinstance<Floats>(actions))
    return act(std::span(static_cast<const float*>(actions.data()), size));
  // ensure() would discard the exception
  const py::array_t<double, py::array::c_style | py::array::forcecast> numbers(actions);
  return act(std::span(numbers.data(), size));
}

py::tuple PythonPool::step(const py::array& actions, double deadline_seconds) {
  const Use use(*this);
  const auto all = static_cast<std::size_t>(pool_->environments());
  return with_actions(actions, all, [&](auto numbers) {
    return play(results(all), deadline_seconds,
                [&](const env::PoolBatch& batch, Clock::time_point deadline) {
                  return pool_->step(numbers, batch, deadline);
                });
  });
}

void PythonPool::seed(const Indices& environments, const Seeds& seeds) {
  const Use use(*this);
  finish_earlier();
  const ReleasedLock released;
  pool_->seed({environments.data(), static_cast<std::size_t>(environments.size())},
              {seeds.data(), static_cast<std::size_t>(seeds.size())});
}

void PythonPool::send_reset(const Indices& environments) {
  const Use use(*this);
  finish_earlier();
  const ReleasedLock released;
  pool_->send_reset({environments.data(), static_cast<std::size_t>(environments.size())});
}

void PythonPool::send(const Indices& environments, const py::array& actions) {
  const Use use(*this);
  finish_earlier();
  const std::span<const std::int32_t> chosen(environments.data(),
                                             static_cast<std::size_t>(environments.size()));
  with_actions(actions, chosen.size(), [&](auto numbers) {
    const ReleasedLock released;
    pool_->send(chosen, numbers);
  });
}

py::tuple PythonPool::receive(std::size_t rows, double deadline_seconds) {
  const Use use(*this);
  if (rows < 1 || rows > static_cast<std::size_t>(pool_->environments()))
    throw std::invalid_argument("a batch of " + std::to_string(rows)
                                + " results; it must be of 1 to "
                                + std::to_string(pool_->environments()));
  const Clock::time_point deadline = deadline_in(deadline_seconds);
  finish_earlier(deadline, deadline_seconds);
  const Results into = results(rows);
  for (;;) {
    {
      const ReleasedLock released;
      if (pool_->receive(into.batch, std::min(deadline, Clock::now() + kSliceOfWait)))
        break;
    }
    if (Clock::now() >= deadline)
      time_out("the next batch", deadline_seconds);
    if (PyErr_CheckSignals() != 0)
      throw py::error_already_set();
  }
  return arrays_of(into);
}

py::array PythonPool::pictures(int count, PictureKind kind, int height, int width,
                               const std::string& camera) {
  const Use use(*this);
  finish_earlier();
  return pictures_.draw(*pool_, count, kind, height, width, camera, threads_);
}

std::size_t PythonPool::in_flight() {
  const Use use(*this);
  return pool_->in_flight();
}

std::string PythonPool::error(int environment) {
  const Use use(*this);
  finish_earlier();
  return pool_->error(environment);
}

bool PythonPool::in_service(int environment) {
  const Use use(*this);
  return pool_->in_service(environment);
}

py::bytes PythonPool::save_state() {
  const Use use(*this);
  finish_earlier();
  std::vector<std::byte> state;
  {
    const ReleasedLock released;
    pool_->save_state(state);
  }
  state.insert(state.end(), kept_.observations.begin(), kept_.observations.end());
  const auto discounts = std::as_bytes(std::span(kept_.discounts));
  state.insert(state.end(), discounts.begin(), discounts.end());
  return {reinterpret_cast<const char*>(state.data()), state.size()};
}

void PythonPool::load_state(const py::bytes& state) {
  const Use use(*this);
  finish_earlier();
  const std::string_view bytes(state);
  const ReleasedLock released;
  last_ = {};
  kept_ = {};
  auto left = pool_->load_state(std::as_bytes(std::span(bytes)));
  const auto rows = static_cast<std::size_t>(pool_->environments());
  if (left.size() == rows * (row_bytes_ + sizeof(double))) { // the state has rows
    if (keeps_rows_) {
      const auto observations = left.first(rows * row_bytes_);
      kept_.observations.assign(observations.begin(), observations.end());
      kept_.discounts.resize(rows);
      std::memcpy(kept_.discounts.data(), left.data() + observations.size(), rows * sizeof(double));
    }
    left = {};
  }
  if (!left.empty())
    throw std::invalid_argument("the state has " + std::to_string(left.size())
                                + " bytes too many; it is damaged or of other environments");
}

} // namespace troupe::python
