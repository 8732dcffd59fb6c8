#include "experiments/python/python_caster.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "env/caster/caster_model.hpp"
#include "env/mujoco_errors.hpp"
#include "experiments/python/native.hpp"
#include "experiments/python/on_workers.hpp"
#include "experiments/python/released_lock.hpp"

namespace py = pybind11;

namespace troupe::python {
namespace {

const std::string kCallersModel = "of the caller";

std::shared_ptr<const env::CasterModel> copied(const mjModel* model) {
  env::install_mujoco_handlers();
  const env::MujocoScope scope(kCallersModel);
  mjModel* copy = mj_copyModel(nullptr, model);
  if (copy == nullptr)
    throw std::runtime_error("MuJoCo cannot copy the model: there is no memory for it");
  return env::caster_model(
      std::make_shared<const env::CompiledModel>(kCallersModel, copy, std::vector<std::string>{}));
}

template <typename T>
void take(const py::object& from, const char* name, T& to) {
  to = from.attr(name).cast<T>();
}

template <typename T, std::size_t N>
void take(const py::object& from, const char* name, T (&to)[N]) {
  const py::object given = from.attr(name);
  const py::array_t<T, py::array::c_style | py::array::forcecast> values(given);
  if (static_cast<std::size_t>(values.size()) != N)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(values.size())
                                + " numbers; this MuJoCo has " + std::to_string(N));
  std::copy_n(values.data(), N, to);
}

mjvCamera camera_of(const py::object& from) {
  mjvCamera camera;
  mjv_defaultCamera(&camera);
  take(from, "type", camera.type);
  take(from, "fixedcamid", camera.fixedcamid);
  take(from, "trackbodyid", camera.trackbodyid);
  take(from, "lookat", camera.lookat);
  take(from, "distance", camera.distance);
  take(from, "azimuth", camera.azimuth);
  take(from, "elevation", camera.elevation);
  take(from, "orthographic", camera.orthographic);
  return camera;
}

mjvOption option_of(const py::object& from) {
  mjvOption option;
  mjv_defaultOption(&option);
  take(from, "label", option.label);
  take(from, "frame", option.frame);
  take(from, "geomgroup", option.geomgroup);
  take(from, "sitegroup", option.sitegroup);
  take(from, "jointgroup", option.jointgroup);
  take(from, "tendongroup", option.tendongroup);
  take(from, "actuatorgroup", option.actuatorgroup);
  take(from, "flexgroup", option.flexgroup);
  take(from, "skingroup", option.skingroup);
  take(from, "flags", option.flags);
  take(from, "bvh_depth", option.bvh_depth);
  take(from, "flex_layer", option.flex_layer);
  return option;
}

/// The memory of a writable array, which must be contiguous and have `bytes` bytes.
std::span<std::byte> memory_of(const py::array& out, std::size_t bytes) {
  const bool dense = (out.flags() & py::array::c_style) != 0;
  if (!dense || !out.writeable() || static_cast<std::size_t>(out.nbytes()) != bytes)
    throw std::invalid_argument("the output has " + std::to_string(out.nbytes())
                                + " bytes; it must be a writable, C-contiguous array of "
                                + std::to_string(bytes) + " bytes");
  return {static_cast<std::byte*>(const_cast<void*>(out.data())), bytes};
}

/// Computes what pictures show of a state: everything that follows from positions alone.
void place(const mjModel& model, mjData& data) {
  mj_kinematics(&model, &data);
  mj_comPos(&model, &data);
  mj_camlight(&model, &data);
  mj_flex(&model, &data);
  mj_tendon(&model, &data);
}

struct FreeData {
  void operator()(mjData* data) const { mj_deleteData(data); }
};

} // namespace

/// Holds the caster for one call.
class PythonCaster::Use {
public:
  explicit Use(PythonCaster& caster) : lock_(caster.mutex_, std::try_to_lock) {
    if (!lock_.owns_lock())
      throw std::runtime_error(
          "the ray caster is in use by another thread; it serves one thread at "
          "a time, so give each thread its own");
  }

private:
  std::unique_lock<std::mutex> lock_;
};

PythonCaster::PythonCaster(std::uintptr_t model, int height, int width, bool effects, bool fog,
                           bool grey)
    : model_(reinterpret_cast<const mjModel*>(model)), channels_(grey ? 1 : 3) {
  if (model_ == nullptr)
    throw std::invalid_argument("the model's address is 0; give a mujoco.MjModel");
  shared_ = copied(model_);
  casters_.push_back(std::make_unique<env::RayCaster>(
      shared_, env::CastOptions{.height = height,
                                .width = width,
                                .camera = -1,
                                .effects = effects,
                                .fog = fog,
                                .grey = grey,
                                .layout = env::PixelLayout::channels_last}));
  mjv_defaultFreeCamera(model_, &camera_);
  mjv_defaultOption(&option_);
}

void PythonCaster::remember(const py::object& camera, const py::object& option) {
  const mjvCamera wanted = camera.is_none() ? camera_ : camera_of(camera);
  casters_.front()->look_through(wanted); // refuses cameras that the model does not have
  camera_ = wanted;
  if (option.is_none())
    return;
  const mjvOption shown = option_of(option);
  casters_.front()->show(shown); // refuses what is not drawn
  option_ = shown;
}

void PythonCaster::look(env::RayCaster& caster) const {
  caster.look_through(camera_);
  caster.show(option_);
}

void PythonCaster::update(std::uintptr_t data, const py::object& camera, const py::object& option) {
  const Use use(*this);
  remember(camera, option);
  look(*casters_.front());
  const ReleasedLock released;
  const env::MujocoScope scope(kCallersModel);
  casters_.front()->update(*model_, *reinterpret_cast<const mjData*>(data));
}

void PythonCaster::draw(PictureKind kind, const py::array& out) {
  const Use use(*this);
  env::RayCaster& caster = *casters_.front();
  const auto memory = memory_of(out, picture_bytes(kind, caster.options()));
  const ReleasedLock released;
  draw_picture(caster, kind, memory);
}

void PythonCaster::draw_positions(const py::array_t<double, py::array::c_style>& positions,
                                  const py::object& camera, const py::object& option,
                                  PictureKind kind, int threads, const py::array& out) {
  const Use use(*this);
  if (positions.ndim() != 2 || positions.shape(1) != model_->nq)
    throw std::invalid_argument("positions must be of shape [n, " + std::to_string(model_->nq)
                                + "], qpos of each picture");
  if (threads < 1 || threads > 256)
    throw std::invalid_argument("threads is " + std::to_string(threads)
                                + "; it must be from 1 to 256");
  const auto count = static_cast<std::size_t>(positions.shape(0));
  const std::size_t bytes = picture_bytes(kind, casters_.front()->options());
  const auto memory = memory_of(out, count * bytes);
  remember(camera, option);
  const std::size_t workers =
      std::min(static_cast<std::size_t>(threads), std::max<std::size_t>(count, 1));
  while (casters_.size() < workers)
    casters_.push_back(std::make_unique<env::RayCaster>(shared_, casters_.front()->options()));
  const ReleasedLock released;
  on_workers(workers, count, [&](std::size_t worker, auto& next) {
    const env::MujocoScope scope(kCallersModel);
    const std::unique_ptr<mjData, FreeData> data(mj_makeData(model_));
    if (!data)
      throw std::runtime_error("MuJoCo cannot make a state: there is no memory for it");
    env::RayCaster& caster = *casters_[worker];
    look(caster);
    for (std::size_t i = next++; i < count; i = next++) {
      std::copy_n(positions.data() + i * static_cast<std::size_t>(model_->nq), model_->nq,
                  data->qpos);
      place(*model_, *data);
      caster.update(*model_, *data);
      draw_picture(caster, kind, memory.subspan(i * bytes, bytes));
    }
  });
}

void PythonCaster::cast_rays(std::uintptr_t data, const Points& origins, const Points& directions,
                             const env::RayQueryOptions& options, const py::array& distances,
                             const py::array& geoms) {
  const Use use(*this);
  const auto count = static_cast<std::size_t>(directions.size() / 3);
  const auto found = elements_of<float>(memory_of(distances, count * sizeof(float)));
  const auto which = elements_of<std::int32_t>(memory_of(geoms, count * sizeof(std::int32_t)));
  const std::span from(origins.data(), static_cast<std::size_t>(origins.size()));
  const std::span along(directions.data(), static_cast<std::size_t>(directions.size()));
  if (!query_)
    query_ = std::make_unique<env::RayQuery>(shared_);
  const ReleasedLock released;
  query_->update(*model_, *reinterpret_cast<const mjData*>(data), options);
  query_->cast(from, along, found, which);
}

void add_ray_caster(py::module_& module) {
  py::enum_<PictureKind>(module, "PictureKind")
      .value("COLOUR", PictureKind::colour)
      .value("DEPTH", PictureKind::depth)
      .value("SEGMENTATION", PictureKind::segmentation);
  py::class_<PythonCaster>(module, "Caster")
      .def(py::init<std::uintptr_t, int, int, bool, bool, bool>(), py::arg("model"), py::kw_only(),
           py::arg("height"), py::arg("width"), py::arg("effects") = true, py::arg("fog") = false,
           py::arg("grey") = false)
      .def_property_readonly("channels", &PythonCaster::channels)
      .def("update", &PythonCaster::update, py::arg("data"), py::arg("camera") = py::none(),
           py::arg("option") = py::none())
      .def("draw", &PythonCaster::draw, py::arg("kind"), py::arg("out"))
      .def("draw_positions", &PythonCaster::draw_positions, py::arg("positions"), py::kw_only(),
           py::arg("camera") = py::none(), py::arg("option") = py::none(), py::arg("kind"),
           py::arg("threads") = 1, py::arg("out"))
      .def(
          "cast_rays",
          [](PythonCaster& caster, std::uintptr_t data, const PythonCaster::Points& origins,
             const PythonCaster::Points& directions, const std::array<bool, mjNGROUP>& groups,
             bool statics, int exclude_body, float cutoff, const py::array& distances,
             const py::array& geoms) {
            caster.cast_rays(data, origins, directions,
                             {.groups = groups,
                              .statics = statics,
                              .exclude_body = exclude_body,
                              .cutoff = cutoff},
                             distances, geoms);
          },
          py::arg("data"), py::arg("origins"), py::arg("directions"), py::kw_only(),
          py::arg("groups"), py::arg("statics"), py::arg("exclude_body"), py::arg("cutoff"),
          py::arg("distances"), py::arg("geoms"));
}

} // namespace troupe::python
