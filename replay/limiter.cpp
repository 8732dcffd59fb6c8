#include "replay/limiter.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "replay/config_rule.hpp"

namespace troupe::replay {

namespace {

constexpr LimiterKind kKinds[] = {LimiterKind::minimum_size, LimiterKind::samples_per_insert,
                                  LimiterKind::queue, LimiterKind::stack};

} // namespace

const char* limiter_name(LimiterKind kind) {
  switch (kind) {
  case LimiterKind::minimum_size:
    return "minimum_size";
  case LimiterKind::samples_per_insert:
    return "samples_per_insert";
  case LimiterKind::queue:
    return "queue";
  case LimiterKind::stack:
    return "stack";
  }
  return "unknown";
}

LimiterKind limiter_named(const std::string& name) {
  std::string all;
  for (const LimiterKind kind : kKinds) {
    if (name == limiter_name(kind))
      return kind;
    all += (all.empty() ? "" : ", ") + std::string(limiter_name(kind));
  }
  throw std::invalid_argument("no rate limiter '" + name + "': it must be one of " + all);
}

void check(const LimiterConfig& config, std::int64_t max_items) {
  need(limiter_name(config.kind) != std::string("unknown"), "limiter",
       static_cast<int>(config.kind), "minimum_size, samples_per_insert, queue or stack");
  if (is_queue(config.kind)) {
    need(config.queue_items >= 1 && config.queue_items <= max_items, "queue_items",
         config.queue_items, "at least 1 and at most max_items, else items would be pushed out");
    return;
  }
  need(config.min_items >= 1 && config.min_items <= max_items, "min_items", config.min_items,
       "at least 1 and at most max_items, else no sample is ever let through");
  if (config.kind == LimiterKind::minimum_size)
    return;
  need(config.samples_per_insert > 0 && std::isfinite(config.samples_per_insert),
       "samples_per_insert", config.samples_per_insert, "above 0 and finite");
  need(config.error_buffer >= std::max(1.0, config.samples_per_insert), "error_buffer",
       config.error_buffer,
       "at least max(1, samples_per_insert), else neither side may ever move; raise it");
}

double Limiter::drift() const {
  return config_.samples_per_insert * static_cast<double>(inserted_ - config_.min_items)
         - static_cast<double>(sampled_);
}

double Limiter::least_drift(std::int64_t count) const {
  return -std::max(config_.error_buffer,
                   static_cast<double>(count) + config_.samples_per_insert - config_.error_buffer);
}

bool Limiter::may_begin(std::int64_t held) const {
  switch (config_.kind) {
  case LimiterKind::minimum_size:
    return held >= config_.min_items;
  case LimiterKind::samples_per_insert:
    return held > 0 && inserted_ >= config_.min_items;
  case LimiterKind::queue:
  case LimiterKind::stack:
    break;
  }
  return held > 0;
}

bool Limiter::can_insert(std::int64_t held) const {
  if (is_queue(config_.kind))
    return held < config_.queue_items;
  return config_.kind == LimiterKind::minimum_size || inserted_ < config_.min_items
         || drift() + config_.samples_per_insert <= config_.error_buffer;
}

bool Limiter::can_sample(std::int64_t held, std::int64_t count) const {
  if (is_queue(config_.kind))
    return held >= count;
  if (!may_begin(held))
    return false;
  return config_.kind == LimiterKind::minimum_size
         || drift() - static_cast<double>(count) >= least_drift(count);
}

std::string Limiter::why_no_sample(std::int64_t held, std::int64_t count) const {
  if (can_sample(held, count))
    return {};
  std::ostringstream text;
  if (is_queue(config_.kind))
    text << "a sample of " << count << " waits for inserts: the " << limiter_name(config_.kind)
         << " holds " << held;
  else if (config_.kind == LimiterKind::minimum_size)
    text << "samples wait for inserts: the table holds " << held << " of min_items "
         << config_.min_items;
  else if (!may_begin(held))
    text << "samples wait for inserts: " << inserted_ << " of min_items " << config_.min_items
         << " inserted";
  else
    text << "a sample of " << count << " waits for inserts: samples are "
         << static_cast<double>(count) - drift() << " ahead of samples_per_insert "
         << config_.samples_per_insert << ", at most " << -least_drift(count)
         << " allowed (error_buffer " << config_.error_buffer << ")";
  return text.str();
}

std::string Limiter::why_no_insert(std::int64_t held) const {
  if (can_insert(held))
    return {};
  std::ostringstream text;
  if (is_queue(config_.kind))
    text << "inserts wait for samples: the " << limiter_name(config_.kind) << " holds " << held
         << ", queue_items are " << config_.queue_items;
  else
    text << "inserts wait for samples: samples are " << drift() + config_.samples_per_insert
         << " behind samples_per_insert " << config_.samples_per_insert << ", at most error_buffer "
         << config_.error_buffer << " allowed";
  return text.str();
}

void Limiter::reconfigure(const LimiterConfig& config, std::int64_t held) {
  config_ = config;
  inserted_ = std::min(held, config.min_items);
  sampled_ = 0;
}

} // namespace troupe::replay
