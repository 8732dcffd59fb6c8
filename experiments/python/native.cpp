#include "experiments/python/native.hpp"
#include "experiments/python/released_lock.hpp"

// Not mod_gil_not_used(): in free-threaded Python, pools and tables were tested, but pictures and
// training were not, so importing this module enables the interpreter's lock.
PYBIND11_MODULE(_native, module) {
  troupe::python::ReleasedLock::watch_exit();
  troupe::python::add_environments(module);
  troupe::python::add_ray_caster(module);
  troupe::python::add_policy(module);
  troupe::python::add_training(module);
  troupe::python::add_replay_sinks(module);
  troupe::python::add_replay_client(module);
  troupe::python::add_replay_table(module);
  troupe::python::add_replay_writers(module);
}
