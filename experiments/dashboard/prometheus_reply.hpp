#pragma once

#include "experiments/dashboard/run_catalogue.hpp"
#include "experiments/web/http.hpp"

namespace troupe::experiments::dashboard {

/// The state of the live runs, from their live.json, in Prometheus' text format (written by
/// prometheus-cpp); for all other runs only their number. experiments/dashboard/grafana.json draws
/// it.
web::Response prometheus_reply(RunCatalogue& catalogue, RunMetrics::Deadline deadline);

} // namespace troupe::experiments::dashboard
