#pragma once

#include <string>

namespace troupe::env {

/// While one of these lives on a thread, MuJoCo's errors on that thread become std::runtime_error
/// naming `model`, and its warnings are kept (the last one) instead of printed or written to a log
/// file. MuJoCo's handler is global to the process: install_mujoco_handlers() sets it once, from
/// any thread, and warnings outside a scope reach the one before it. The scope itself is per thread
/// and may be nested. No allocation.
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
  char warning_[1024]; // only the first byte is cleared: a scope costs nothing per step
};

void install_mujoco_handlers();

} // namespace troupe::env
