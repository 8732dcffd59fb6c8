#include "env/golden/golden_replay.hpp"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "env/golden/golden_lqr.hpp"

namespace troupe::env {

RecordedTable recorded_table(const RecordedArrays& arrays, const std::string& name,
                             std::size_t columns, const std::string& source) {
  const auto found = arrays.find(name);
  if (found == arrays.end())
    throw std::runtime_error(source + " has no array '" + name + "'");
  RecordedTable t{found->second.as_doubles(), 0, columns};
  t.rows = columns == 0 ? 0 : t.values.size() / columns;
  if (columns == 0 ? !t.values.empty() : t.values.size() % columns != 0)
    throw std::runtime_error(
        source + ": array '" + name + "' has " + std::to_string(t.values.size())
        + " numbers, which is not a multiple of the " + std::to_string(columns) + " of our model");
  return t;
}

GoldenReplay::GoldenReplay(const std::string& folder, const std::string& task,
                           const std::string& models)
    : folder_(folder),
      task_(task),
      source_((std::filesystem::path(folder) / (task + ".npz")).string()),
      arrays_(read_npz(source_)),
      environment_(find_task(task), models),
      physics_(*environment_.physics()),
      observation_(environment_.spec().observation_bytes() / sizeof(double)) {}

void GoldenReplay::begin() {
  begin_episode("model/");
  mjData& data = physics_.data();
  const mjModel& model = physics_.model();
  const auto set = [this](mjtNum* values, auto count, const char* name) {
    set_data(values, static_cast<std::size_t>(count), std::string("init/") + name);
  };
  set(data.qpos, model.nq, "qpos");
  set(data.qvel, model.nv, "qvel");
  set(data.act, model.na, "act");
  set(data.ctrl, model.nu, "ctrl");
  set(data.qfrc_applied, model.nv, "qfrc_applied");
  set(data.xfrc_applied, 6 * model.nbody, "xfrc_applied");
  set(data.mocap_pos, 3 * model.nmocap, "mocap_pos");
  set(data.mocap_quat, 4 * model.nmocap, "mocap_quat");
  set(data.userdata, model.nuserdata, "userdata");
  set(&data.time, 1, "time");
  std::vector<double> active(data.eq_active, data.eq_active + model.neq);
  set(active.data(), model.neq, "eq_active");
  std::transform(active.begin(), active.end(), data.eq_active, [](double on) { return on != 0; });
  physics_.forward_without_actuation();
  set(data.qacc_warmstart, model.nv, "qacc_warmstart"); // the call above changed it
  environment_.continue_here();
  environment_.task().observe(physics_, observation_);
}

TimeStep GoldenReplay::step(std::span<const double> action) {
  return environment_.step(action, std::as_writable_bytes(std::span(observation_)));
}

void GoldenReplay::begin_probes() {
  begin_episode(has_any("probe_model/") ? "probe_model/" : "model/");
}

double GoldenReplay::probe(std::span<const double> qpos, std::span<const double> qvel,
                           std::span<const double> ctrl, std::span<const double> observation) {
  mjData& data = physics_.data();
  std::size_t offset = 0;
  for (const ArraySpec& array : environment_.spec().observations) {
    if (array.name == "actuator_state")
      std::copy_n(observation.begin() + static_cast<std::ptrdiff_t>(offset),
                  std::min(array.elements(), static_cast<std::size_t>(physics_.model().na)),
                  data.act);
    offset += array.elements();
  }
  std::copy(qpos.begin(), qpos.end(), data.qpos);
  std::copy(qvel.begin(), qvel.end(), data.qvel);
  std::copy(ctrl.begin(), ctrl.end(), data.ctrl);
  std::fill_n(data.qacc_warmstart, physics_.model().nv, 0.0);
  physics_.forward();
  environment_.task().observe(physics_, observation_);
  return environment_.task().reward(physics_);
}

void GoldenReplay::begin_episode(const std::string& model_prefix) {
  physics_.share_arrays();
  physics_.reset();
  if (task_.starts_with("lqr_"))
    set_recorded_springs(physics_, folder_, task_);
  set_model(model_prefix);
}

bool GoldenReplay::has_any(const std::string& prefix) const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

/// Copies the recorded array of that name into `values`, if there is one.
void GoldenReplay::set_data(double* values, std::size_t count, const std::string& name) {
  const auto found = arrays_.find(name);
  if (found == arrays_.end())
    return;
  const std::vector<double> recorded = found->second.as_doubles();
  if (recorded.size() != count)
    throw std::runtime_error(source_ + ": array '" + name + "' has "
                             + std::to_string(recorded.size()) + " numbers; our model needs "
                             + std::to_string(count));
  std::copy(recorded.begin(), recorded.end(), values);
}

void GoldenReplay::set_model(const std::string& prefix) {
  constexpr std::string_view kOption = "opt.";
  for (const auto& [name, array] : arrays_) {
    if (!name.starts_with(prefix))
      continue;
    const std::string field = name.substr(prefix.size());
    if (field.starts_with(kOption))
      physics_.set_option(std::string_view(field).substr(kOption.size()), array.as_doubles());
    else
      set_model_array(field, name, array);
  }
}

void GoldenReplay::set_model_array(const std::string& field, const std::string& name,
                                   const NpyArray& array) {
  if (array.type != "<f4") {
    const auto own = physics_.own_array(field);
    set_data(own.data(), own.size(), name);
    return;
  }
  const auto own = physics_.own_float_array(field);
  std::vector<double> wide(own.size());
  set_data(wide.data(), wide.size(), name);
  std::transform(wide.begin(), wide.end(), own.begin(),
                 [](double value) { return static_cast<float>(value); });
}

} // namespace troupe::env
