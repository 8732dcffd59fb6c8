#pragma once

#include "experiments/dashboard/http.hpp"
#include "experiments/dashboard/run_catalogue.hpp"

namespace troupe::experiments::dashboard {

/// The state of the runs that are under way, from their live.json, in Prometheus' text format
/// (prometheus-cpp writes it); of the others only how many there are. experiments/dashboard/
/// grafana.json draws it.
Response prometheus_reply(RunCatalogue& catalogue, RunMetrics::Deadline deadline);

} // namespace troupe::experiments::dashboard
