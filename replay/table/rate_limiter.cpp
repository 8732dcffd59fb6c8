#include "replay/table/rate_limiter.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "replay/table/config_rule.hpp"

namespace troupe::replay {

namespace {

constexpr const char* kLimiters[] = {"minimum_size", "samples_per_insert", "queue", "stack"};

} // namespace

const char* limiter_name(RateLimiterKind kind) {
  return name_of(kLimiters, kind);
}

RateLimiterKind limiter_named(const std::string& name) {
  return value_named<RateLimiterKind>(kLimiters, name, "rate limiter");
}

void check(const RateLimiterConfig& config, std::int64_t max_items) {
  need(limiter_name(config.kind) != std::string("unknown"), "limiter",
       static_cast<int>(config.kind), "minimum_size, samples_per_insert, queue or stack");
  if (is_queue(config.kind)) {
    need(config.queue_items >= 1 && config.queue_items <= max_items, "queue_items",
         config.queue_items, "at least 1 and at most max_items");
    return;
  }
  need(config.minimum_items >= 1 && config.minimum_items <= max_items, "minimum_items",
       config.minimum_items, "at least 1 and at most max_items, else no sample could ever proceed");
  if (config.kind == RateLimiterKind::minimum_size)
    return;
  need(config.samples_per_insert > 0 && std::isfinite(config.samples_per_insert),
       "samples_per_insert", config.samples_per_insert, "above 0 and finite");
  need(config.error_buffer >= std::max(1.0, config.samples_per_insert), "error_buffer",
       config.error_buffer,
       "at least max(1, samples_per_insert), else both sides could wait forever; raise it");
}

double RateLimiter::drift() const {
  return config_.samples_per_insert * static_cast<double>(inserted_ - config_.minimum_items)
         - static_cast<double>(sampled_);
}

double RateLimiter::least_drift(std::int64_t count) const {
  return -std::max(config_.error_buffer,
                   static_cast<double>(count) + config_.samples_per_insert - config_.error_buffer);
}

bool RateLimiter::may_begin(std::int64_t held) const {
  switch (config_.kind) {
  case RateLimiterKind::minimum_size:
    return held >= config_.minimum_items;
  case RateLimiterKind::samples_per_insert:
    return held > 0 && inserted_ >= config_.minimum_items;
  case RateLimiterKind::queue:
  case RateLimiterKind::stack:
    break;
  }
  return held > 0;
}

bool RateLimiter::can_insert(std::int64_t held) const {
  if (is_queue(config_.kind))
    return held < config_.queue_items;
  return config_.kind == RateLimiterKind::minimum_size || inserted_ < config_.minimum_items
         || drift() + config_.samples_per_insert <= config_.error_buffer;
}

bool RateLimiter::can_sample(std::int64_t held, std::int64_t count) const {
  if (is_queue(config_.kind))
    return held >= count;
  if (!may_begin(held))
    return false;
  return config_.kind == RateLimiterKind::minimum_size
         || drift() - static_cast<double>(count) >= least_drift(count);
}

std::string RateLimiter::why_no_sample(std::int64_t held, std::int64_t count) const {
  if (can_sample(held, count))
    return {};
  std::ostringstream text;
  if (is_queue(config_.kind))
    text << "a sample of " << count << " waits for inserts: the " << limiter_name(config_.kind)
         << " holds " << held;
  else if (config_.kind == RateLimiterKind::minimum_size)
    text << "samples wait for inserts: the table holds " << held << " of minimum_items "
         << config_.minimum_items;
  else if (!may_begin(held))
    text << "samples wait for inserts: " << inserted_ << " of minimum_items "
         << config_.minimum_items << " inserted";
  else
    text << "a sample of " << count << " waits for inserts: samples are "
         << static_cast<double>(count) - drift() << " ahead of samples_per_insert "
         << config_.samples_per_insert << ", at most " << -least_drift(count)
         << " allowed (error_buffer " << config_.error_buffer << ")";
  return text.str();
}

std::string RateLimiter::why_no_insert(std::int64_t held) const {
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

void RateLimiter::reconfigure(const RateLimiterConfig& config, std::int64_t held) {
  config_ = config;
  inserted_ = std::min(held, config.minimum_items);
  sampled_ = 0;
}

} // namespace troupe::replay
