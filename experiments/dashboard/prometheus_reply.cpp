#include "experiments/dashboard/prometheus_reply.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "env/text/json_depth.hpp"
#include "experiments/run_folder/live_file.hpp"

namespace troupe::experiments::dashboard {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<prometheus::ClientMetric::Label>;

constexpr int kDeepestLive = 8;

/// Metric families in the order of their first values.
class Families {
public:
  void add(const std::string& name, const std::string& help, MetricType type, const Labels& labels,
           double value) {
    const auto [at, fresh] = index_.try_emplace(name, families_.size());
    if (fresh) {
      families_.push_back({.name = name, .help = help, .type = type, .metric = {}});
    }
    prometheus::ClientMetric metric;
    metric.label = labels;
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    families_[at->second].metric.push_back(metric);
  }
  const std::vector<MetricFamily>& all() const { return families_; }

private:
  std::map<std::string, std::size_t> index_;
  std::vector<MetricFamily> families_;
};

struct Field {
  const char* key; // key in live.json
  const char* name;
  const char* help;
  MetricType type;
};

constexpr Field kFields[] = {
    {"environment_steps", "troupe_environment_steps_total",
     "Environment steps, counted with action repeat", MetricType::Counter},
    {"agent_steps", "troupe_agent_steps_total", "Decisions of the policy", MetricType::Counter},
    {"episodes", "troupe_episodes_total", "Training episodes that ended", MetricType::Counter},
    {"updates", "troupe_updates_total", "Updates of the learner", MetricType::Counter},
    {"inserts", "troupe_replay_inserts_total", "Items inserted into replay", MetricType::Counter},
    {"samples", "troupe_replay_samples_total", "Items sampled from replay", MetricType::Counter},
    {"frames", "troupe_frames_total", "Rendered frames", MetricType::Counter},
    {"replay_failed_spills", "troupe_replay_failed_spills_total",
     "Chunks of replay that could not be written to disk", MetricType::Counter},
    {"failed_copies", "troupe_checkpoint_failed_copies_total",
     "Checkpoints that could not be copied to checkpoint.store", MetricType::Counter},
    {"taken_over", "troupe_processes_taken_over_total",
     "Processes of a dead head that its successor took over", MetricType::Counter},
    {"refused_connections", "troupe_refused_connections_total",
     "Connections of strangers that the head refused", MetricType::Counter},
    {"training_seconds", "troupe_training_seconds_total", "Time of training without evaluations",
     MetricType::Counter},
    {"processor_seconds", "troupe_processor_seconds_total",
     "Processor time of all processes of the run", MetricType::Counter},
    {"replay_items", "troupe_replay_items", "Items in replay", MetricType::Gauge},
    {"replay_bytes", "troupe_replay_bytes", "Memory of replay", MetricType::Gauge},
    {"replay_disk_bytes", "troupe_replay_disk_bytes", "Disk space of replay", MetricType::Gauge},
    {"parameter_lag", "troupe_parameter_lag_updates",
     "Updates since the parameters that environment actors use", MetricType::Gauge},
    {"insertions_in_flight", "troupe_insertions_in_flight",
     "Insertions of environment actors that no shard has accepted yet", MetricType::Gauge},
    {"waiting_insertions", "troupe_waiting_insertions",
     "Insertions that wait for the shards' rate limiters", MetricType::Gauge},
    {"waiting_samples", "troupe_waiting_samples",
     "Requests for samples that wait for the shards' rate limiters", MetricType::Gauge},
    {"ready_batches", "troupe_ready_batches", "Full batches that wait for a learner's next update",
     MetricType::Gauge},
    {"episode_return", "troupe_episode_return", "Mean return of the last ten training episodes",
     MetricType::Gauge},
    {"process_bytes", "troupe_process_resident_bytes",
     "Resident memory of the process that leads the run", MetricType::Gauge}};

void add_live(const nlohmann::json& live, const Labels& run, Families& families) {
  for (const Field& field : kFields) {
    if (const auto found = live.find(field.key); found != live.end() && found->is_number()) {
      families.add(field.name, field.help, field.type, run, *found);
    }
  }
  const auto with = [&run](const char* name, const std::string& value) {
    Labels labels = run;
    labels.push_back({name, value});
    return labels;
  };
  const auto learner = live.value("learner", nlohmann::json::object());
  for (const auto& [name, value] : learner.items()) {
    if (value.is_number()) {
      families.add("troupe_learner_metric", "Last metrics of the learner", MetricType::Gauge,
                   with("metric", name), value);
    }
  }
  const auto stages = live.value("seconds", nlohmann::json::object());
  for (const auto& [stage, seconds] : stages.items()) {
    if (seconds.is_number()) {
      families.add("troupe_stage_seconds_total", "Where actors spent their time",
                   MetricType::Counter, with("stage", stage), seconds);
    }
  }
  const auto shards = live.value("shards", nlohmann::json::array());
  for (const auto& shard : shards) {
    const Labels labels = with("shard", std::to_string(shard.value("index", 0)));
    families.add("troupe_shard_items", "Items in a replay shard", MetricType::Gauge, labels,
                 shard.value("items", 0.0));
    families.add("troupe_shard_waiting",
                 "1 while a request waits for a replay shard's rate limiter", MetricType::Gauge,
                 labels, shard.value("waiting", "").empty() ? 0 : 1);
  }
}

} // namespace

web::Response prometheus_reply(RunCatalogue& catalogue, RunMetrics::Deadline deadline) {
  Families families;
  std::map<std::string, int> states = {
      {"running", 0}, {"finished", 0}, {"stopped", 0}, {"failed", 0}, {"killed", 0}};
  for (const RunPtr& run : catalogue.runs()) {
    const RunSummary summary = run->summary(deadline);
    ++states[summary.state];
    if (summary.state != "running") {
      continue;
    }
    const Labels labels = {{"run", run->id()}, {"task", summary.task}, {"agent", summary.agent}};
    const std::string live = read_live_file(run->folder()).value_or("null");
    try {
      if (!env::is_deeper_than(live, kDeepestLive)) {
        add_live(nlohmann::json::parse(live), labels, families);
      }
    } catch (const nlohmann::json::exception&) { // no live.json, or one from another version
    }
    if (summary.result) {
      families.add("troupe_result", "Last evaluation of the run", MetricType::Gauge, labels,
                   *summary.result);
    }
    if (summary.target > 0) {
      families.add("troupe_target", "Environment steps (or updates) at which the run ends",
                   MetricType::Gauge, labels, summary.target);
    }
  }
  for (const auto& [state, count] : states) {
    families.add("troupe_runs", "Runs in the folder, by state", MetricType::Gauge,
                 {{"state", state}}, count);
  }
  return {.type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(families.all())};
}

} // namespace troupe::experiments::dashboard
