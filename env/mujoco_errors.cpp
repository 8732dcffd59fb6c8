#include "env/mujoco_errors.hpp"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <stdexcept>

namespace troupe::env {

namespace {
thread_local MujocoScope* innermost = nullptr;
mjfLogHandler outer_handler = nullptr; // what was installed before
} // namespace

/// The handler that MuJoCo calls. After an error it must not return, so it throws through MuJoCo's
/// C frames: libmujoco carries unwind tables for all of its code (section .eh_frame), and
/// mj_resetData restores the arena of the interrupted mjData.
struct MujocoHandler {
  static void handle(const mjLogMessage* message) {
    MujocoScope* scope = innermost;
    if (message->level == mjLOG_ERROR) {
      std::string text = "MuJoCo failed on model '" + (scope != nullptr ? scope->model_ : "?")
                         + "': " + message->subject;
      std::replace(text.begin(), text.end(), '\n', ' ');
      throw std::runtime_error(text);
    }
    if (scope == nullptr && outer_handler != nullptr)
      outer_handler(message);
    else if (scope != nullptr && message->level == mjLOG_WARNING)
      std::snprintf(scope->warning_, sizeof scope->warning_, "%s", message->subject);
  }
};

MujocoScope::MujocoScope(const std::string& model) : model_(model), outer_(innermost) {
  warning_[0] = 0;
  innermost = this;
}

MujocoScope::~MujocoScope() {
  innermost = outer_;
}

void install_mujoco_handlers() {
  static std::once_flag once;
  std::call_once(once, [] { outer_handler = mju_setLogHandler(&MujocoHandler::handle); });
}

} // namespace troupe::env
