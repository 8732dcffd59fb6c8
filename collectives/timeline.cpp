#include "collectives/timeline.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "collectives/communicator.hpp"

namespace troupe::collectives {
namespace {

constexpr auto kNever = std::numeric_limits<std::int64_t>::max();
constexpr int kClockBarriers = 32; // to measure clock offsets

std::int64_t nanoseconds(Timeline::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// Chrome traces use microseconds; three decimals preserve the nanoseconds.
void append_microseconds(std::string& text, std::int64_t nanoseconds) {
  text += std::to_string(nanoseconds / 1000) + '.';
  const auto rest = std::to_string(1000 + nanoseconds % 1000);
  text.append(rest, 1, 3);
}

void append_name(std::string& text, const char* name, int index) {
  for (; *name; ++name) // names are literals; only a quote could end the string
    text += *name == '"' || *name == '\\' || static_cast<unsigned char>(*name) < ' ' ? '_' : *name;
  if (index >= 0)
    text += ' ' + std::to_string(index);
}

/// Returns the events of one rank as the elements of a JSON array. Times are relative to `origin`,
/// by rank 0's clock.
std::string trace_of(const Timeline& timeline, std::int64_t origin, std::int64_t ahead) {
  const auto pid = std::to_string(timeline.rank());
  std::string text = R"({"name":"process_name","ph":"M","pid":)" + pid
                     + R"(,"tid":0,"args":{"name":"rank )" + pid
                     + "\",\"dropped_spans\":" + std::to_string(timeline.dropped()) + "}}";
  for (const auto& event : timeline.events()) {
    text += ",\n{\"name\":\"";
    append_name(text, event.name, event.index);
    text += R"(","ph":"X","pid":)" + pid + ",\"tid\":" + std::to_string(event.lane) + ",\"ts\":";
    append_microseconds(text, std::max<std::int64_t>(nanoseconds(event.begin) - ahead - origin, 0));
    text += ",\"dur\":";
    append_microseconds(
        text, std::max<std::int64_t>(nanoseconds(event.end) - nanoseconds(event.begin), 0));
    text += '}';
  }
  return text;
}

void write_file(const std::filesystem::path& path, const std::vector<std::string>& parts) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (std::size_t i = 0; i < parts.size(); ++i)
    file << (i > 0 ? ",\n" : "") << parts[i];
  file << "\n]}\n";
  file.close();
  if (!file)
    throw std::runtime_error("timeline: cannot write " + path.string()
                             + "; check that its folder exists and that the disk is not full");
}

at::Tensor bytes_of(const std::string& text) {
  auto tensor = at::empty({static_cast<std::int64_t>(text.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), text.data(), text.size());
  return tensor;
}

/// Gathers every rank's tensor through memory of the device. The results are on the CPU.
std::vector<at::Tensor> gather_through(Communicator& communicator, const at::Tensor& mine,
                                       c10::Device device) {
  auto all = communicator.all_gather(mine.to(device));
  for (auto& one : all)
    one = one.cpu();
  return all;
}

/// Gathers every rank's text. For transport, texts are padded to the length of the longest.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine,
                                      c10::Device device) {
  auto length = at::empty({1}, at::kLong);
  *length.mutable_data_ptr<std::int64_t>() = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> lengths;
  for (const auto& one : gather_through(communicator, length, device))
    lengths.push_back(*one.const_data_ptr<std::int64_t>());
  auto padded = at::zeros({*std::max_element(lengths.begin(), lengths.end())}, at::kByte);
  padded.narrow(0, 0, lengths[static_cast<std::size_t>(communicator.rank())]).copy_(bytes_of(mine));
  std::vector<std::string> texts;
  for (const auto& one : gather_through(communicator, padded, device))
    texts.emplace_back(static_cast<const char*>(one.const_data_ptr()),
                       static_cast<std::size_t>(lengths[texts.size()]));
  return texts;
}

} // namespace

Timeline::Timeline(int rank, std::size_t capacity) : rank_(rank), capacity_(capacity) {
  if (capacity == 0)
    throw std::invalid_argument("timeline: capacity 0 must be at least 1");
}

int Timeline::lane_of_this_thread() {
  const auto id = std::this_thread::get_id();
  const auto found = std::find(threads_.begin(), threads_.end(), id);
  if (found == threads_.end())
    threads_.push_back(id);
  return static_cast<int>(found - threads_.begin());
}

void Timeline::start(std::size_t capacity) {
  if (capacity == 0)
    throw std::invalid_argument("timeline: capacity 0 must be at least 1");
  {
    const std::lock_guard lock(mutex_);
    capacity_ = capacity;
  }
  clear();
  recording_.store(true, std::memory_order_relaxed);
}

void Timeline::clear() {
  const std::lock_guard lock(mutex_);
  events_ = {};
  threads_ = {};
  next_ = 0;
  dropped_ = 0;
}

void Timeline::add(const char* name, int index, Clock::time_point begin, Clock::time_point end) {
  if (!recording())
    return;
  const std::lock_guard lock(mutex_);
  const Event event{
      .name = name, .index = index, .lane = lane_of_this_thread(), .begin = begin, .end = end};
  if (events_.size() < capacity_) {
    events_.push_back(event);
    return;
  }
  events_[next_] = event;
  next_ = (next_ + 1) % capacity_;
  ++dropped_;
}

std::vector<Timeline::Event> Timeline::events() const {
  const std::lock_guard lock(mutex_);
  auto result = events_;
  std::rotate(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(next_), result.end());
  return result;
}

std::uint64_t Timeline::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::vector<ClockOffset> measure_clock_offsets(Communicator& communicator, c10::Device device) {
  auto times = at::empty({kClockBarriers, 2}, at::kLong); // before and after each barrier
  auto* mine = times.mutable_data_ptr<std::int64_t>();
  for (int round = 0; round < kClockBarriers; ++round) {
    mine[2 * round] = nanoseconds(Timeline::Clock::now());
    communicator.barrier();
    mine[2 * round + 1] = nanoseconds(Timeline::Clock::now());
  }
  const auto all = gather_through(communicator, times, device);
  const auto* first = all[0].const_data_ptr<std::int64_t>();
  std::vector<ClockOffset> offsets(all.size());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto* other = all[rank].const_data_ptr<std::int64_t>();
    auto least = std::numeric_limits<std::int64_t>::min();
    auto most = std::numeric_limits<std::int64_t>::max();
    for (int round = 0; round < kClockBarriers; ++round) {
      least = std::max(least, other[2 * round] - first[2 * round + 1]);
      most = std::min(most, other[2 * round + 1] - first[2 * round]);
    }
    offsets[rank] = {.ahead = std::chrono::nanoseconds(least + (most - least) / 2),
                     .error = std::chrono::nanoseconds((most - least + 1) / 2)};
  }
  return offsets;
}

void write_timeline(const std::vector<const Timeline*>& timelines, Communicator* communicator,
                    const std::filesystem::path& path, c10::Device device) {
  std::int64_t ahead = 0;
  if (communicator) {
    const auto offsets = measure_clock_offsets(*communicator, device);
    ahead = offsets[static_cast<std::size_t>(communicator->rank())].ahead.count();
  }
  auto origin = at::full({1}, kNever, at::kLong); // the earliest span, by rank 0's clock
  auto& first = *origin.mutable_data_ptr<std::int64_t>();
  for (const auto* timeline : timelines)
    for (const auto& event : timeline->events())
      first = std::min(first, nanoseconds(event.begin) - ahead);
  if (communicator) {
    auto there = origin.to(device);
    communicator->all_reduce(there, ReduceOp::min);
    origin.copy_(there);
  }
  std::string mine;
  for (const auto* timeline : timelines)
    mine += (mine.empty() ? "" : ",\n") + trace_of(*timeline, first, ahead);
  const auto parts =
      communicator ? gather_texts(*communicator, mine, device) : std::vector<std::string>{mine};
  if (!communicator || communicator->rank() == 0)
    write_file(path, parts);
}

} // namespace troupe::collectives
