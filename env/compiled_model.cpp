#include "env/compiled_model.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <stdexcept>
#include <tuple>

#include "env/mujoco_errors.hpp"

namespace troupe::env {

namespace {

using SpecPtr = std::unique_ptr<mjSpec, decltype(&mj_deleteSpec)>;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::shared_ptr<const CompiledModel> compile(const std::string& name, const std::string& source,
                                             SpecPtr spec, const char* parse_error,
                                             const ModelEdit& edit) {
  if (!spec)
    throw std::runtime_error(source + " is not a MuJoCo model: " + one_line(parse_error));
  if (edit != nullptr)
    edit(*spec);
  mjModel* model = mj_compile(spec.get(), nullptr);
  if (model == nullptr)
    throw std::runtime_error(source + " does not compile: " + one_line(mjs_getError(spec.get())));
  std::vector<std::string> warnings;
  for (int i = 0; i < mjs_numWarnings(spec.get()); ++i)
    warnings.emplace_back(mjs_getWarning(spec.get(), i));
  return std::make_shared<const CompiledModel>(name, model, std::move(warnings));
}

std::shared_ptr<const CompiledModel> load_file(const std::filesystem::path& path,
                                               const std::string& name, const ModelEdit& edit) {
  if (!std::filesystem::is_regular_file(path))
    throw std::runtime_error(
        "models: " + path.string()
        + " does not exist; name the folder of the control suite's XML files (dm_control/suite), or"
          " unpack them with experiments/packaging/install_dependencies.sh");
  install_mujoco_handlers();
  const MujocoScope scope(name);
  char error[1024] = "";
  SpecPtr spec(mj_parseXML(path.c_str(), nullptr, error, sizeof error), &mj_deleteSpec);
  return compile(name, path.string(), std::move(spec), error, edit);
}

/// All live models of the process. MuJoCo's compiler is not thread-safe, and a live model is not
/// compiled twice.
struct Loaded {
  std::mutex mutex;
  std::map<std::tuple<std::string, std::string, std::string>, std::weak_ptr<const CompiledModel>>
      models;
};

Loaded& loaded() {
  static Loaded table;
  return table;
}

} // namespace

CompiledModel::CompiledModel(std::string name, mjModel* model, std::vector<std::string> warnings)
    : name_(std::move(name)), model_(model), warnings_(std::move(warnings)) {}

CompiledModel::~CompiledModel() {
  mj_deleteModel(model_);
}

std::filesystem::path models_folder(const std::string& name, const std::filesystem::path& built,
                                    const std::filesystem::path& object) {
  std::error_code ignored;
  for (const auto& folder : shared_folders(object, name))
    if (std::filesystem::is_directory(folder, ignored))
      return folder;
  const auto beside = (object.parent_path() / ".." / name).lexically_normal();
  const bool moved = !std::filesystem::is_directory(built, ignored)
                     && std::filesystem::is_directory(beside, ignored);
  return moved ? beside : built; // if neither exists, messages name the build's folder
}

std::filesystem::path suite_folder() {
  return models_folder("suite", TROUPE_SUITE_DIR);
}

std::shared_ptr<const CompiledModel> load_model(const std::string& folder, const std::string& file,
                                                const std::string& variant, const ModelEdit& edit) {
  const std::filesystem::path base =
      folder.empty() ? suite_folder() : std::filesystem::path(folder);
  Loaded& table = loaded();
  const std::lock_guard lock(table.mutex);
  std::weak_ptr<const CompiledModel>& entry =
      table.models[{base.lexically_normal().string(), file, variant}];
  if (auto model = entry.lock())
    return model;
  const std::string stem = std::filesystem::path(file).stem().string();
  auto model = load_file(base / file, variant.empty() ? stem : stem + "/" + variant, edit);
  entry = model;
  return model;
}

std::string mujoco_version() {
  return mj_versionString();
}

std::shared_ptr<const CompiledModel> compile_model(const std::string& name,
                                                   const std::string& xml) {
  const std::lock_guard lock(loaded().mutex);
  install_mujoco_handlers();
  const MujocoScope scope(name);
  char error[1024] = "";
  SpecPtr spec(mj_parseXMLString(xml.c_str(), nullptr, error, sizeof error), &mj_deleteSpec);
  return compile(name, "the XML of '" + name + "'", std::move(spec), error, nullptr);
}

} // namespace troupe::env
