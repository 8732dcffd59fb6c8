#pragma once

#include "experiments/dashboard/run_catalogue.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// The state of the runs that are under way, from their live.json, in Prometheus' text format
/// (prometheus-cpp writes it); of the others only how many there are. experiments/dashboard/
/// grafana.json draws it.
web::Response prometheus_reply(RunCatalogue& catalogue, RunMetrics::Deadline deadline);

} // namespace troupe::experiments::dashboard
