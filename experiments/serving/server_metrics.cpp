#include "experiments/serving/server_metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace troupe::experiments::serving {
namespace {

using prometheus::Histogram;
const Histogram::BucketBoundaries kSeconds = {1e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
                                              1e-2, 2e-2, 5e-2, 0.1,  0.5,  1,    5};
const Histogram::BucketBoundaries kBatches = {1, 2, 4, 8, 16, 32, 64, 128, 256};

} // namespace

struct ServerMetrics::Parts {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& requests =
      prometheus::BuildCounter()
          .Name("troupe_policy_requests_total")
          .Help("Answered requests for actions, by version and HTTP status")
          .Register(registry);
  prometheus::Family<Histogram>& seconds = prometheus::BuildHistogram()
                                               .Name("troupe_policy_request_seconds")
                                               .Help("From a request's last byte to its answer")
                                               .Register(registry);
  Histogram& batches = prometheus::BuildHistogram()
                           .Name("troupe_policy_batch_size")
                           .Help("Observations that were computed together")
                           .Register(registry)
                           .Add({}, kBatches);
  prometheus::Family<prometheus::Counter>& reloads =
      prometheus::BuildCounter()
          .Name("troupe_policy_reloads_total")
          .Help("Newer parameters that were loaded or refused")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& updates =
      prometheus::BuildGauge()
          .Name("troupe_policy_updates")
          .Help("Updates behind the parameters of a version")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& shares =
      prometheus::BuildGauge()
          .Name("troupe_policy_share")
          .Help("A version's share of the requests, relative to the others'")
          .Register(registry);
  prometheus::Gauge& queue = prometheus::BuildGauge()
                                 .Name("troupe_policy_queue_length")
                                 .Help("Observations that wait")
                                 .Register(registry)
                                 .Add({});
  prometheus::Gauge& sessions = prometheus::BuildGauge()
                                    .Name("troupe_policy_sessions")
                                    .Help("Episodes that the server remembers")
                                    .Register(registry)
                                    .Add({});
};

ServerMetrics::ServerMetrics() : parts_(std::make_unique<Parts>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::answered(const std::string& version, int status, double seconds) {
  parts_->requests.Add({{"version", version}, {"status", std::to_string(status)}}).Increment();
  parts_->seconds.Add({{"version", version}}, kSeconds).Observe(seconds);
}

void ServerMetrics::computed(std::size_t batch) {
  parts_->batches.Observe(static_cast<double>(batch));
}

void ServerMetrics::reloaded(bool succeeded) {
  parts_->reloads.Add({{"outcome", succeeded ? "loaded" : "refused"}}).Increment();
}

void ServerMetrics::loaded(const std::string& version, double updates, double share) {
  parts_->updates.Add({{"version", version}}).Set(updates);
  parts_->shares.Add({{"version", version}}).Set(share);
}

std::string ServerMetrics::text(std::size_t queued, std::size_t sessions) {
  parts_->queue.Set(static_cast<double>(queued));
  parts_->sessions.Set(static_cast<double>(sessions));
  return prometheus::TextSerializer().Serialize(parts_->registry.Collect());
}

} // namespace troupe::experiments::serving
