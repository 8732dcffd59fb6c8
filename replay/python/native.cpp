#include "replay/python/native_client.hpp"

/// The part of the Python package troupe_replay that is compiled; the rest says what it means.
PYBIND11_MODULE(_native, module) {
  pybind11::register_exception<troupe::replay::ShardSilence>(module, "ShardSilent",
                                                             PyExc_ConnectionError);
  troupe::replay::python::add_client(module);
  troupe::replay::python::add_writer(module);
}
