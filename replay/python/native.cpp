#include "replay/python/native_client.hpp"

/// The compiled part of the Python package troupe_replay; its Python sources document it.
PYBIND11_MODULE(_native, module) {
  pybind11::register_exception<troupe::replay::ShardSilence>(module, "ShardSilent",
                                                             PyExc_ConnectionError);
  troupe::replay::python::add_client(module);
  troupe::replay::python::add_writer(module);
}
