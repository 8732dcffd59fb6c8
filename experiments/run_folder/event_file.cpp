#include "experiments/run_folder/event_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "experiments/run_folder/events.pb.h"

namespace troupe::experiments {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U); // the polynomial, bit-reversed
    }
    table[i] = value;
  }
  return table;
}

constexpr auto kTable = make_table();

template <typename T>
void append_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>((value >> (8 * i)) & 0xFF);
  }
}

double seconds_of(UtcTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::filesystem::path new_file(const std::filesystem::path& folder, UtcTime now) {
  const std::string base =
      "events.out.tfevents." + std::to_string(static_cast<long long>(seconds_of(now))) + ".troupe";
  std::filesystem::path path = folder / base;
  for (int i = 2; std::filesystem::exists(path); ++i) {
    path = folder / (base + "." + std::to_string(i));
  }
  return path;
}

Event event_at(UtcTime now, std::optional<std::int64_t> step) {
  Event event;
  event.set_wall_time(seconds_of(now));
  if (step) {
    event.set_step(*step);
  }
  return event;
}

/// Omits the bins outside the outermost counts.
void put(const learner::Histogram& in, EventHistogram& out) {
  out.set_min(in.minimum);
  out.set_max(in.maximum);
  out.set_num(static_cast<double>(in.count));
  out.set_sum(in.sum);
  out.set_sum_squares(in.sum_squares);
  const auto width = (in.high - in.low) / static_cast<double>(in.counts.size());
  const auto counted = [](std::int64_t count) { return count > 0; };
  const auto first = std::find_if(in.counts.begin(), in.counts.end(), counted);
  const auto last = std::find_if(in.counts.rbegin(), in.counts.rend(), counted).base();
  for (auto at = first; at < last; ++at) {
    const auto end = static_cast<double>(at - in.counts.begin() + 1);
    out.add_bucket_limit(at + 1 == in.counts.end() ? in.high : in.low + width * end);
    out.add_bucket(static_cast<double>(*at));
  }
}

} // namespace

std::uint32_t crc32c(const void* bytes, std::size_t count) {
  const auto* data = static_cast<const unsigned char*>(bytes);
  std::uint32_t crc = 0xFFFFFFFFU;
  for (std::size_t i = 0; i < count; ++i) {
    crc = (crc >> 8) ^ kTable[(crc ^ data[i]) & 0xFFU];
  }
  return crc ^ 0xFFFFFFFFU;
}

std::uint32_t masked_crc32c(const void* bytes, std::size_t count) {
  const std::uint32_t crc = crc32c(bytes, count);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

EventFile::EventFile(const std::filesystem::path& folder, UtcTime now)
    : file_(new_file(folder, now)) {
  Event event = event_at(now, {});
  event.set_file_version("brain.Event:2");
  write(event);
}

void EventFile::write(const Event& event) {
  const std::string record = event.SerializeAsString();
  std::string bytes;
  append_little_endian(bytes, static_cast<std::uint64_t>(record.size()));
  append_little_endian(bytes, masked_crc32c(bytes.data(), bytes.size()));
  bytes += record;
  append_little_endian(bytes, masked_crc32c(record.data(), record.size()));
  file_.append(std::move(bytes));
}

void EventFile::scalars(UtcTime now, std::int64_t step,
                        const std::map<std::string, double>& values) {
  Event event = event_at(now, step);
  for (const auto& [tag, number] : values) {
    if (std::isfinite(number)) {
      auto* value = event.mutable_summary()->add_value();
      value->set_tag(tag);
      value->set_simple_value(static_cast<float>(number));
    }
  }
  if (event.has_summary()) {
    write(event);
  }
}

void EventFile::histograms(UtcTime now, std::int64_t step,
                           const std::map<std::string, learner::Histogram>& values) {
  Event event = event_at(now, step);
  for (const auto& [tag, histogram] : values) {
    if (histogram.count > 0) {
      auto* value = event.mutable_summary()->add_value();
      value->set_tag(tag);
      put(histogram, *value->mutable_histo());
    }
  }
  if (event.has_summary()) {
    write(event);
  }
}

void EventFile::picture(UtcTime now, std::int64_t step, const std::string& tag,
                        const EncodedPicture& picture) {
  Event event = event_at(now, step);
  auto* value = event.mutable_summary()->add_value();
  value->set_tag(tag);
  value->mutable_image()->set_width(picture.width);
  value->mutable_image()->set_height(picture.height);
  value->mutable_image()->set_colorspace(3);
  value->mutable_image()->set_encoded_image_string(picture.bytes);
  write(event);
}

void EventFile::write_hparams(UtcTime now, const std::string& tag, const EventHparams& content) {
  Event event = event_at(now, {});
  auto* value = event.mutable_summary()->add_value();
  value->set_tag("_hparams_/" + tag);
  auto* plugin = value->mutable_metadata()->mutable_plugin_data();
  plugin->set_plugin_name("hparams");
  plugin->set_content(content.SerializeAsString());
  write(event);
}

void EventFile::started(UtcTime now, const Settings& settings) {
  EventHparams content;
  content.set_version(0);
  content.mutable_session_start_info()->set_start_time_secs(seconds_of(now));
  auto& hparams = *content.mutable_session_start_info()->mutable_hparams();
  for (const auto& [key, setting] : settings) {
    if (const auto* truth = std::get_if<bool>(&setting)) {
      hparams[key].set_bool_value(*truth);
    } else if (const auto* number = std::get_if<double>(&setting)) {
      hparams[key].set_number_value(*number);
    } else {
      hparams[key].set_string_value(std::get<std::string>(setting));
    }
  }
  write_hparams(now, "session_start_info", content);
}

void EventFile::ended(UtcTime now, bool success) {
  EventHparams content;
  content.set_version(0);
  auto& end = *content.mutable_session_end_info();
  end.set_status(success ? EventHparams::SessionEnd::SUCCESS : EventHparams::SessionEnd::FAILURE);
  end.set_end_time_secs(seconds_of(now));
  write_hparams(now, "session_end_info", content);
}

} // namespace troupe::experiments
