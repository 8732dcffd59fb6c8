#pragma once

#include <mujoco/mujoco.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "env/own_file.hpp"

namespace troupe::env {

/// A compiled MuJoCo model. Immutable: any number of Physics on any threads share it (the suite's
/// textures alone are 12 MB).
class CompiledModel {
public:
  CompiledModel(std::string name, mjModel* model, std::vector<std::string> warnings); // takes model
  ~CompiledModel();
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  const std::string& name() const { return name_; } // "cheetah", for messages
  const mjModel& get() const { return *model_; }
  const std::vector<std::string>& warnings() const { return warnings_; } // of the compiler

private:
  std::string name_;
  mjModel* model_;
  std::vector<std::string> warnings_;
};

/// "3.17.0": the MuJoCo in this process.
std::string mujoco_version();

/// Changes a parsed model before it is compiled, e.g. adds poles.
using ModelEdit = std::function<void(mjSpec&)>;

/// The folder of models `name`: `share/troupe/<name>` of the package that the code in `object`, a
/// program or a library, belongs to; else `built`, the folder that the build found, if it exists;
/// else `<name>` beside the folder of `object`, the layout of programs copied to other hosts.
std::filesystem::path models_folder(const std::string& name, const std::filesystem::path& built,
                                    const std::filesystem::path& object = own_file());

/// That of the control suite's models, "suite".
std::filesystem::path suite_folder();

/// The model of <folder>/<file>, included files taken from the same folder, then edited. Models
/// that are still in use are shared: (folder, file, variant) is the identity, so `variant` names
/// the edit. An empty folder means suite_folder(). Any thread. Throws std::runtime_error (missing
/// file, malformed XML) naming the file.
std::shared_ptr<const CompiledModel> load_model(const std::string& folder, const std::string& file,
                                                const std::string& variant = {},
                                                const ModelEdit& edit = {});

/// The same from XML text, not shared.
std::shared_ptr<const CompiledModel> compile_model(const std::string& name, const std::string& xml);

} // namespace troupe::env
