#include "replay/table/table_config_wire.hpp"

#include <algorithm>
#include <sstream>

namespace troupe::replay {

env::ArraySpec column_of(const wire::Column& from) {
  return {from.name(),
          static_cast<env::ElementType>(std::min<std::uint32_t>(from.type(), 255)),
          {from.shape().begin(), from.shape().end()}};
}

void put(const env::ArraySpec& column, wire::Column& to) {
  to.set_name(column.name);
  to.set_type(static_cast<std::uint32_t>(column.type));
  to.mutable_shape()->Assign(column.shape.begin(), column.shape.end());
}

Signature signature_of(const wire::Signature& from) {
  Signature signature;
  for (const wire::Column& column : from.columns())
    signature.columns.push_back(column_of(column));
  signature.items = from.items();
  return signature;
}

void put(const Signature& signature, wire::Signature& to) {
  for (const env::ArraySpec& column : signature.columns)
    put(column, *to.add_columns());
  to.set_items(signature.items);
}

ShapePtr shape_of(const wire::Shape& from) {
  auto shape = std::make_shared<ItemShape>();
  for (const wire::Slices& column : from.columns()) {
    std::vector<Slice>& slices = shape->columns.emplace_back();
    for (int i = 0; i + 1 < column.first_and_count_size(); i += 2)
      slices.push_back({column.first_and_count(i), column.first_and_count(i + 1)});
  }
  return shape;
}

void put(const ItemShape& shape, wire::Shape& to) {
  for (const std::vector<Slice>& slices : shape.columns) {
    wire::Slices& made = *to.add_columns();
    for (const Slice& slice : slices) {
      made.add_first_and_count(slice.first);
      made.add_first_and_count(slice.count);
    }
  }
}

namespace {

SelectorConfig selector_of(const wire::Selector& from) {
  SelectorConfig made{.kind = static_cast<SelectorKind>(from.kind()), .exponent = from.exponent()};
  if (from.has_fade())
    made.fade = from.fade();
  if (from.has_least_fade())
    made.least_fade = from.least_fade();
  return made;
}

void put_selector(const SelectorConfig& selector, wire::Selector& to) {
  to.set_kind(static_cast<std::uint32_t>(selector.kind));
  to.set_exponent(selector.exponent);
  to.set_fade(selector.fade);
  to.set_least_fade(selector.least_fade);
}

std::string text_of(const SelectorConfig& selector) {
  std::ostringstream text;
  text << selector_name(selector.kind);
  if (selector.kind == SelectorKind::prioritized)
    text << " (exponent " << selector.exponent;
  if (selector.fade < 1)
    text << ", fade " << selector.fade << " to " << selector.least_fade;
  if (selector.kind == SelectorKind::prioritized)
    text << ')';
  return text.str();
}

} // namespace

RateLimiterConfig limiter_of(const wire::Limiter& from) {
  return {.kind = static_cast<RateLimiterKind>(from.kind()),
          .minimum_items = from.minimum_items(),
          .samples_per_insert = from.samples_per_insert(),
          .error_buffer = from.error_buffer(),
          .queue_items = from.queue_items()};
}

void put(const RateLimiterConfig& limiter, wire::Limiter& to) {
  to.set_kind(static_cast<std::uint32_t>(limiter.kind));
  to.set_minimum_items(limiter.minimum_items);
  to.set_samples_per_insert(limiter.samples_per_insert);
  to.set_error_buffer(limiter.error_buffer);
  to.set_queue_items(limiter.queue_items);
}

TableConfig config_of(const wire::Config& from) {
  return {.max_items = from.max_items(),
          .max_bytes = from.max_bytes(),
          .sampler = selector_of(from.sampler()),
          .remover = selector_of(from.remover()),
          .max_times_sampled = from.max_times_sampled(),
          .insert_at_maximum = from.insert_at_maximum(),
          .compression = static_cast<Compression>(std::min<std::uint32_t>(from.compression(), 255)),
          .limiter = limiter_of(from.limiter())};
}

void put(const TableConfig& config, wire::Config& to) {
  to.set_max_items(config.max_items);
  to.set_max_bytes(config.max_bytes);
  put_selector(config.sampler, *to.mutable_sampler());
  put_selector(config.remover, *to.mutable_remover());
  to.set_max_times_sampled(config.max_times_sampled);
  to.set_insert_at_maximum(config.insert_at_maximum);
  to.set_compression(static_cast<std::uint32_t>(config.compression));
  put(config.limiter, *to.mutable_limiter());
}

TableStats stats_of(const wire::StatsReply& from) {
  return {.items = from.items(),
          .bytes = from.bytes(),
          .encoded_chunks = from.encoded_chunks(),
          .chunks_on_disk = from.chunks_on_disk(),
          .disk_bytes = from.disk_bytes(),
          .failed_spills = from.failed_spills(),
          .inserted = from.inserted(),
          .sampled = from.sampled(),
          .dropped_duplicates = from.dropped_duplicates(),
          .updated_priorities = from.updated_priorities(),
          .late_priorities = from.late_priorities(),
          .sampling_weight = from.sampling_weight()};
}

void put(const TableStats& stats, wire::StatsReply& to) {
  to.set_items(stats.items);
  to.set_bytes(stats.bytes);
  to.set_encoded_chunks(stats.encoded_chunks);
  to.set_chunks_on_disk(stats.chunks_on_disk);
  to.set_disk_bytes(stats.disk_bytes);
  to.set_failed_spills(stats.failed_spills);
  to.set_inserted(stats.inserted);
  to.set_sampled(stats.sampled);
  to.set_dropped_duplicates(stats.dropped_duplicates);
  to.set_updated_priorities(stats.updated_priorities);
  to.set_late_priorities(stats.late_priorities);
  to.set_sampling_weight(stats.sampling_weight);
}

std::string difference(const TableConfig& before, const TableConfig& now) {
  std::ostringstream text;
  const auto compare = [&](const char* key, auto saved, auto mine) {
    if (saved != mine)
      text << (text.tellp() > 0 ? ", " : "") << "replay." << key << " was " << saved << " and is "
           << mine;
  };
  compare("max_items", before.max_items, now.max_items);
  compare("max_bytes", before.max_bytes, now.max_bytes);
  compare("sampler", text_of(before.sampler), text_of(now.sampler));
  compare("remover", text_of(before.remover), text_of(now.remover));
  compare("max_times_sampled", before.max_times_sampled, now.max_times_sampled);
  compare("insert_at_maximum", before.insert_at_maximum, now.insert_at_maximum);
  compare("compression", std::string(compression_name(before.compression)),
          std::string(compression_name(now.compression)));
  const RateLimiterConfig& old = before.limiter;
  const RateLimiterConfig& fresh = now.limiter;
  compare("limiter", std::string(limiter_name(old.kind)), std::string(limiter_name(fresh.kind)));
  compare("minimum_items", old.minimum_items, fresh.minimum_items);
  compare("samples_per_insert", old.samples_per_insert, fresh.samples_per_insert);
  compare("error_buffer", old.error_buffer, fresh.error_buffer);
  compare("queue_items", old.queue_items, fresh.queue_items);
  return text.str();
}

} // namespace troupe::replay
