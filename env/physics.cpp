#include "env/physics.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <mujoco/mjxmacro.h>

#include "env/mujoco_errors.hpp"
#include "env/nearest_names.hpp"
#include "env/state_bytes.hpp"

namespace troupe::env {

namespace {

constexpr int kSavedState = mjSTATE_INTEGRATION;
constexpr std::size_t kMostName = 64; // bytes of a model array's name

/// The pointer member of `m` called `field` if its elements are of type T; sets `count` to their
/// number.
template <typename T>
T** find_array(mjModel* m, std::string_view field, std::size_t& count) {
  MJMODEL_POINTERS_PREAMBLE(m)
  static_cast<void>(nq + nv + na + nu + nmocap);
#define X(type, member, rows, columns)                                                             \
  if constexpr (std::is_same_v<type, T>)                                                           \
    if (field == #member) {                                                                        \
      count = static_cast<std::size_t>(m->rows) * static_cast<std::size_t>(columns);               \
      return &m->member;                                                                           \
    }
  MJMODEL_POINTERS
#undef X
  return nullptr;
}

int object_count(const mjModel& model, mjtObj type) {
  switch (type) {
  case mjOBJ_BODY:
    return static_cast<int>(model.nbody);
  case mjOBJ_JOINT:
    return static_cast<int>(model.njnt);
  case mjOBJ_GEOM:
    return static_cast<int>(model.ngeom);
  case mjOBJ_SITE:
    return static_cast<int>(model.nsite);
  case mjOBJ_CAMERA:
    return static_cast<int>(model.ncam);
  case mjOBJ_LIGHT:
    return static_cast<int>(model.nlight);
  case mjOBJ_ACTUATOR:
    return static_cast<int>(model.nactuator);
  case mjOBJ_SENSOR:
    return static_cast<int>(model.nsensor);
  case mjOBJ_TENDON:
    return static_cast<int>(model.ntendon);
  case mjOBJ_MATERIAL:
    return static_cast<int>(model.nmat);
  default:
    throw std::invalid_argument(std::string("objects of type ") + mju_type2Str(type)
                                + " cannot be looked up by name");
  }
}

} // namespace

Physics::Physics(std::shared_ptr<const CompiledModel> compiled)
    : compiled_(std::move(compiled)), model_(compiled_->get()), data_(nullptr) {
  const MujocoScope scope(name());
  data_ = mj_makeData(&model_);
  if (data_ == nullptr)
    throw std::runtime_error("MuJoCo could not allocate the data of model '" + name() + "'");
  try {
    reset();
  } catch (...) {
    mj_deleteData(data_);
    throw;
  }
}

Physics::~Physics() {
  mj_deleteData(data_);
}

void Physics::check(const char* last_warning) {
  for (int i = 0; i < mjNWARNING; ++i)
    if (data_->warning[i].number > 0)
      throw std::runtime_error(
          "simulation of model '" + name() + "' is invalid: "
          + (*last_warning != '\0'
                 ? last_warning
                 : mju_warningText(i, static_cast<std::size_t>(data_->warning[i].lastinfo)))
          + "; reset the environment");
}

void Physics::reset() {
  {
    const MujocoScope scope(name());
    mj_resetData(&model_, data_);
  }
  forward_without_actuation();
}

void Physics::forward() {
  const MujocoScope scope(name());
  mj_forward(&model_, data_);
  check(scope.last_warning());
}

void Physics::forward_without_actuation() {
  struct Restore {
    int& flags;
    int value;
    ~Restore() { flags = value; }
  } restore{model_.opt.disableflags, model_.opt.disableflags};
  model_.opt.disableflags |= mjDSBL_ACTUATION;
  forward();
}

void Physics::place() {
  const MujocoScope scope(name());
  mj_kinematics(&model_, data_);
}

int Physics::contacts() {
  const MujocoScope scope(name());
  mj_kinematics(&model_, data_);
  mj_collision(&model_, data_);
  data_->warning[mjWARN_CONTACTFULL] = {};
  return static_cast<int>(data_->ncon);
}

void Physics::step(int count) {
  const MujocoScope scope(name());
  if (model_.opt.integrator != mjINT_RK4) {
    mj_step2(&model_, data_);
    for (int i = 1; i < count; ++i)
      mj_step(&model_, data_);
  } else {
    for (int i = 0; i < count; ++i) {
      // mj_step() for RK4, but without recomputing what the last mj_step1() left behind.
      mj_checkPos(&model_, data_);
      mj_checkVel(&model_, data_);
      mj_forwardSkip(&model_, data_, i == 0 ? mjSTAGE_VEL : mjSTAGE_NONE, 0);
      mj_checkAcc(&model_, data_);
      mj_RungeKutta(&model_, data_, 4);
    }
  }
  mj_step1(&model_, data_);
  check(scope.last_warning());
}

void Physics::step_plain(int count) {
  const MujocoScope scope(name());
  for (int i = 0; i < count; ++i)
    mj_step(&model_, data_);
  check(scope.last_warning());
}

std::vector<std::string> Physics::names(mjtObj type) const {
  std::vector<std::string> all;
  for (int i = 0; i < object_count(model_, type); ++i) {
    const char* text = mj_id2name(&model_, type, i);
    all.emplace_back(text != nullptr ? text : "");
  }
  return all;
}

int Physics::id(mjtObj type, std::string_view object) const {
  const int found = mj_name2id(&model_, type, std::string(object).c_str());
  if (found >= 0)
    return found;
  std::string message = "model '" + name() + "' has no " + mju_type2Str(type) + " '"
                        + std::string(object) + "'; nearest:";
  for (const std::string& other : nearest_names(std::string(object), names(type)))
    message += " '" + other + "'";
  throw std::invalid_argument(message);
}

std::span<const mjtNum> Physics::sensor(int sensor_id) const {
  if (sensor_id < 0 || sensor_id >= static_cast<int>(model_.nsensor))
    throw std::invalid_argument("model '" + name() + "' has no sensor "
                                + std::to_string(sensor_id));
  return {data_->sensordata + model_.sensor_adr[sensor_id],
          static_cast<std::size_t>(model_.sensor_dim[sensor_id])};
}

template <typename T>
std::span<T> Physics::own(std::string_view field) {
  std::size_t count = 0;
  T** pointer = find_array<T>(&model_, field, count);
  if (pointer == nullptr)
    throw std::invalid_argument("model '" + name() + "' has no array '" + std::string(field)
                                + "' of this type that can be changed");
  const auto present =
      std::find_if(own_.begin(), own_.end(), [&](const Own& o) { return o.field == pointer; });
  if (present == own_.end()) {
    Own copy{pointer, std::string(field), sizeof(T), *pointer,
             std::vector<std::byte>(count * sizeof(T))};
    if (count > 0)
      std::memcpy(copy.bytes.data(), *pointer, copy.bytes.size());
    *pointer = reinterpret_cast<T*>(copy.bytes.data()); // the buffer does not move when own_ grows
    own_.push_back(std::move(copy));
  }
  return {*pointer, count};
}

std::span<mjtNum> Physics::own_array(std::string_view field) {
  return own<mjtNum>(field);
}
std::span<float> Physics::own_float_array(std::string_view field) {
  return own<float>(field);
}

void Physics::set_option(std::string_view field, std::span<const double> values) {
  const auto set = [&](auto* option, std::size_t count) {
    using T = std::remove_pointer_t<decltype(option)>;
    if (values.size() != count)
      throw std::invalid_argument("model '" + name() + "': option '" + std::string(field) + "' has "
                                  + std::to_string(count) + " numbers; "
                                  + std::to_string(values.size()) + " were given");
    std::transform(values.begin(), values.end(), option,
                   [](double value) { return static_cast<T>(value); });
  };
#define X(type, member, count)                                                                     \
  if (field == #member)                                                                            \
    return set(&model_.opt.member, count);
#define XVEC(type, member, count)                                                                  \
  if (field == #member)                                                                            \
    return set(model_.opt.member, count);
  MJOPTION_FIELDS
#undef X
#undef XVEC
  throw std::invalid_argument("model '" + name() + "' has no option '" + std::string(field) + "'");
}

void Physics::share_arrays() {
  for (const Own& copy : own_)
    *static_cast<void**>(copy.field) = copy.shared;
  own_.clear();
  model_.opt = compiled_->get().opt;
}

void Physics::save_state(std::vector<std::byte>& out) const {
  std::vector<mjtNum> state(static_cast<std::size_t>(mj_stateSize(&model_, kSavedState)));
  mj_getState(&model_, data_, state.data(), kSavedState);
  save_array<mjtNum>(out, state);
  save_array<mjtNum>(out, {data_->sensordata, static_cast<std::size_t>(model_.nsensordata)});
  save_value(out, model_.opt);
  save_value(out, static_cast<std::uint64_t>(own_.size()));
  for (const Own& copy : own_) {
    save_array<char>(out, copy.name);
    save_value(out, static_cast<std::uint64_t>(copy.bytes.size() / copy.element_bytes));
    out.insert(out.end(), copy.bytes.begin(), copy.bytes.end());
  }
}

/// Restores options and private arrays from save_state(); other arrays become shared again.
std::span<const std::byte> Physics::load_own(std::span<const std::byte> in) {
  share_arrays();
  load_value(in, model_.opt, "options");
  std::uint64_t arrays = 0;
  load_value(in, arrays, "model arrays");
  for (std::uint64_t i = 0; i < arrays; ++i) {
    const std::string field = load_text(in, "model array's name");
    if (field.size() > kMostName)
      throw std::invalid_argument("a model array's name in a saved environment state has "
                                  + std::to_string(field.size()) + " bytes: the state is damaged");
    std::size_t count = 0;
    if (find_array<float>(&model_, field, count) != nullptr)
      load_array<float>(in, own_float_array(field), "a model array");
    else
      load_array<mjtNum>(in, own_array(field), "a model array");
  }
  return in;
}

std::span<const std::byte> Physics::load_state(std::span<const std::byte> in) {
  std::vector<mjtNum> state(static_cast<std::size_t>(mj_stateSize(&model_, kSavedState)));
  std::vector<mjtNum> sensors(static_cast<std::size_t>(model_.nsensordata));
  load_array<mjtNum>(in, state, "the simulation");
  load_array<mjtNum>(in, sensors, "the sensors");
  in = load_own(in);
  const MujocoScope scope(name());
  mj_resetData(&model_, data_);
  mj_setState(&model_, data_, state.data(), kSavedState);
  mj_step1(&model_, data_); // everything else that step() and renderers need follows from the state
  std::copy(sensors.begin(), sensors.end(), data_->sensordata);
  check(scope.last_warning());
  return in;
}

ActionSpec control_bounds(const Physics& physics) {
  const mjModel& model = physics.model();
  ActionSpec bounds;
  for (int i = 0; i < static_cast<int>(model.nu); ++i) {
    const bool limited = model.actuator_ctrllimited[i];
    const double most = std::numeric_limits<double>::infinity();
    bounds.minimum.push_back(limited ? model.actuator_ctrlrange[2 * i] : -most);
    bounds.maximum.push_back(limited ? model.actuator_ctrlrange[2 * i + 1] : most);
  }
  return bounds;
}

} // namespace troupe::env
