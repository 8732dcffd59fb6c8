#pragma once

#include <string>

namespace troupe::env {

/// While a scope exists on a thread, MuJoCo's errors on that thread become std::runtime_error
/// naming `model`, and the last warning is kept instead of being printed or written to a log file.
/// MuJoCo's handler is global to the process: install_mujoco_handlers() sets it once, from any
/// thread, and forwards warnings outside any scope to the handler that was installed before. Scopes
/// may be nested. No allocation.
class MujocoScope {
public:
  explicit MujocoScope(const std::string& model);
  ~MujocoScope();
  MujocoScope(const MujocoScope&) = delete;
  MujocoScope& operator=(const MujocoScope&) = delete;

  const char* last_warning() const { return warning_; } // "" when there was none

private:
  friend struct MujocoHandler;
  const std::string& model_;
  MujocoScope* outer_;
  char warning_[1024]; // only the first byte is cleared, so that a scope costs nothing per step
};

void install_mujoco_handlers();

} // namespace troupe::env
