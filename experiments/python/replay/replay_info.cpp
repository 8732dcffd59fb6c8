#include "experiments/python/replay/replay_info.hpp"

#include <pybind11/stl.h>

namespace py = pybind11;

namespace troupe::python {
namespace {

py::dict config_dict(const replay::TableConfig& config) {
  py::dict made;
  made["max_items"] = config.max_items;
  made["max_bytes"] = config.max_bytes;
  made["sampler"] = replay::selector_name(config.sampler.kind);
  made["remover"] = replay::selector_name(config.remover.kind);
  made["priority_exponent"] = config.sampler.exponent;
  made["max_times_sampled"] = config.max_times_sampled;
  made["insert_at_maximum"] = config.insert_at_maximum;
  made["compression"] = replay::compression_name(config.compression);
  made["limiter"] = replay::limiter_name(config.limiter.kind);
  made["minimum_items"] = config.limiter.minimum_items;
  made["samples_per_insert"] = config.limiter.samples_per_insert;
  made["error_buffer"] = config.limiter.error_buffer;
  made["queue_items"] = config.limiter.queue_items;
  return made;
}

} // namespace

py::dict info_dict(const replay::ShardInfo& info) {
  py::dict made;
  made["protocol"] = info.protocol;
  made["tables"] = info.tables;
  made["items"] = info.stats.items;
  made["bytes"] = info.stats.bytes;
  made["inserted"] = info.stats.inserted;
  made["sampled"] = info.stats.sampled;
  made["updated_priorities"] = info.stats.updated_priorities;
  made["late_priorities"] = info.stats.late_priorities;
  made["chunks_on_disk"] = info.stats.chunks_on_disk;
  made["disk_bytes"] = info.stats.disk_bytes;
  made["failed_spills"] = info.stats.failed_spills;
  made["waiting"] = info.why_waiting;
  made["config"] = info.config ? py::object(config_dict(*info.config)) : py::object(py::none());
  return made;
}

py::list columns_list(const replay::Signature& signature) {
  py::list made;
  for (const env::ArraySpec& column : signature.columns)
    made.append(py::make_tuple(column.name, env::element_name(column.type),
                               py::tuple(py::cast(column.shape))));
  return made;
}

} // namespace troupe::python
