#pragma once

#include <mujoco/mujoco.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "env/own_file.hpp"

namespace troupe::env {

/// A compiled MuJoCo model. It is immutable, so any number of Physics on any threads may share it
/// (the suite's textures alone take 12 MB).
class CompiledModel {
public:
  CompiledModel(std::string name, mjModel* model, std::vector<std::string> warnings); // owns model
  ~CompiledModel();
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  const std::string& name() const { return name_; } // "cheetah", for messages
  const mjModel& get() const { return *model_; }
  const std::vector<std::string>& warnings() const { return warnings_; } // from the compiler

private:
  std::string name_;
  mjModel* model_;
  std::vector<std::string> warnings_;
};

/// The version of the MuJoCo library in this process, "3.17.0".
std::string mujoco_version();

/// Changes a parsed model before it is compiled, e.g. adds poles.
using ModelEdit = std::function<void(mjSpec&)>;

/// The folder of models `name`. `object` is a program or library. The first folder that exists is
/// returned: `share/troupe/<name>` of the package that `object` belongs to; `built`, the folder
/// found when Troupe was built; `<name>` beside the folder of `object`, which is where programs
/// copied to other hosts have it. If none exists, `built`.
std::filesystem::path models_folder(const std::string& name, const std::filesystem::path& built,
                                    const std::filesystem::path& object = own_file());

/// The folder of the control suite's models: models_folder("suite").
std::filesystem::path suite_folder();

/// Loads <folder>/<file>, resolves included files in the same folder, and applies `edit`. Models in
/// use are shared; (folder, file, variant) identifies a model, so `variant` must name the edit. An
/// empty folder means suite_folder(). Any thread may call this. Throws std::runtime_error naming
/// the file if it is missing or malformed.
std::shared_ptr<const CompiledModel> load_model(const std::string& folder, const std::string& file,
                                                const std::string& variant = {},
                                                const ModelEdit& edit = {});

/// Compiles a model from XML text. The result is not shared.
std::shared_ptr<const CompiledModel> compile_model(const std::string& name, const std::string& xml);

} // namespace troupe::env
