#include "experiments/run_folder/event_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "experiments/run_folder/events.pb.h"

namespace troupe::experiments {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1U) != 0 ? 0x82F63B78U : 0U); // the polynomial, reflected
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

/// Bins on both sides of the outermost counts are left out.
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

EventFile::EventFile(const std::filesystem::path& folder, UtcTime now) {
  const std::string base =
      "events.out.tfevents." + std::to_string(static_cast<long long>(seconds_of(now))) + ".troupe";
  path_ = folder / base;
  for (int i = 2; std::filesystem::exists(path_); ++i) {
    path_ = folder / (base + "." + std::to_string(i));
  }
  errno = 0;
  out_.open(path_, std::ios::binary);
  Event event;
  event.set_wall_time(seconds_of(now));
  event.set_file_version("brain.Event:2");
  write(event.SerializeAsString());
}

void EventFile::write(const std::string& record) {
  std::string bytes;
  append_little_endian(bytes, static_cast<std::uint64_t>(record.size()));
  append_little_endian(bytes, masked_crc32c(bytes.data(), bytes.size()));
  bytes += record;
  append_little_endian(bytes, masked_crc32c(record.data(), record.size()));
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out_.flush();
  if (!out_) {
    throw std::runtime_error(path_.string() + ": cannot be written: " + std::strerror(errno));
  }
}

void EventFile::scalars(UtcTime now, std::int64_t step,
                        const std::map<std::string, double>& values) {
  Event event;
  event.set_wall_time(seconds_of(now));
  event.set_step(step);
  for (const auto& [tag, number] : values) {
    if (std::isfinite(number)) {
      auto* value = event.mutable_summary()->add_value();
      value->set_tag(tag);
      value->set_simple_value(static_cast<float>(number));
    }
  }
  if (event.has_summary()) {
    write(event.SerializeAsString());
  }
}

void EventFile::histograms(UtcTime now, std::int64_t step,
                           const std::map<std::string, learner::Histogram>& values) {
  Event event;
  event.set_wall_time(seconds_of(now));
  event.set_step(step);
  for (const auto& [tag, histogram] : values) {
    if (histogram.count > 0) {
      auto* value = event.mutable_summary()->add_value();
      value->set_tag(tag);
      put(histogram, *value->mutable_histo());
    }
  }
  if (event.has_summary()) {
    write(event.SerializeAsString());
  }
}

} // namespace troupe::experiments
