#include <algorithm>
#include <bit>
#include <cstring>

#include "replay/gather.hpp"
#include "replay/selector.hpp"
#include "replay/wire_format.hpp"

namespace troupe::replay {

namespace {

static_assert(sizeof(SampleRecord) == 40);

using env::wire::Frame;
using env::wire::Message;

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

/// Where the frames of an item lie when each is sent once: those of the observation, 0 to history,
/// then those of the next one that are not among them.
struct FramePlan {
  FramePlan(std::uint32_t history, std::uint32_t steps, std::uint32_t stack)
      : newest(history + steps),
        next_first(newest + 1 > stack ? newest + 1 - stack : 0),
        skip(std::max(next_first, history + 1) - (history + 1)),
        count(newest + 1 - skip),
        own(history + 1) {}

  std::uint32_t newest;     // row of the window
  std::uint32_t next_first; // the next observation's oldest
  std::uint32_t skip;       // rows between the two that neither shows
  std::uint32_t count;      // frames sent
  std::uint32_t own;        // frames of the observation

  std::uint32_t row(std::uint32_t sent) const { return sent < own ? sent : sent + skip; }
  std::uint32_t sent(std::uint32_t row) const { return row < own ? row : row - skip; }
};

} // namespace

std::size_t part_size(const TransitionSpec& spec, std::span<const Item> items) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (const Item& item : items) {
    const FramePlan plan(item.history, item.steps, static_cast<std::uint32_t>(spec.stack));
    bytes += plan.count * spec.frame.bytes();
    if (count > 0 && bytes > kPartBytes)
      break;
    ++count;
  }
  return count;
}

Message encode_sample(const TransitionSpec& spec, std::uint64_t fingerprint, std::uint64_t request,
                      std::int64_t first, std::span<const Item> items, const FrameMaker& frame) {
  wire::Envelope head = envelope(fingerprint);
  wire::SamplePart& part = *head.mutable_sample_part();
  part.set_request(request);
  part.set_first(first);
  part.set_count(static_cast<std::int64_t>(items.size()));
  part.set_table_items(items.empty() ? 0 : items[0].table_items);
  const RowLayout layout(spec);
  const auto stack = static_cast<std::uint32_t>(spec.stack);
  const std::size_t action_bytes = layout.action_size * sizeof(float);
  std::size_t frames = 0;
  for (const Item& item : items)
    frames += FramePlan(item.history, item.steps, stack).count;
  Frame scalars = frame(items.size() * (sizeof(SampleRecord) + action_bytes));
  Frame pictures = frame(frames * layout.frame_bytes);
  std::byte* scalar = scalars.bytes().data();
  std::byte* picture = pictures.bytes().data();
  for (const Item& item : items) {
    const NStep sums = n_step(spec, item);
    const SampleRecord record{item.key,   sums.reward,        sums.discount, item.history,
                              item.steps, item.times_sampled, item.priority, item.probability};
    std::memcpy(scalar, &record, sizeof record);
    std::memcpy(scalar + sizeof record, item.row(item.history + 1U) + layout.action, action_bytes);
    scalar += sizeof record + action_bytes;
    const FramePlan plan(item.history, item.steps, stack);
    for (std::uint32_t sent = 0; sent < plan.count; ++sent, picture += layout.frame_bytes)
      std::memcpy(picture, item.row(plan.row(sent)), layout.frame_bytes);
  }
  Message message;
  message.header = head.SerializeAsString();
  message.frames.push_back(std::move(scalars));
  message.frames.push_back(std::move(pictures));
  return message;
}

bool decode_sample(const TransitionSpec& spec, const wire::SamplePart& header,
                   std::span<const Frame> frames, const BatchView& batch, std::int64_t first_row) {
  const RowLayout layout(spec);
  const auto stack = static_cast<std::uint32_t>(spec.stack);
  const std::size_t action_bytes = layout.action_size * sizeof(float);
  const std::size_t scalar_bytes = sizeof(SampleRecord) + action_bytes;
  const auto count = static_cast<std::size_t>(header.count());
  if (header.count() < 1 || frames.size() != 2 || frames[0].size() / scalar_bytes != count
      || frames[0].size() % scalar_bytes != 0)
    return false;
  const std::byte* scalar = frames[0].bytes().data();
  std::span<const std::byte> pictures = frames[1].bytes();
  for (std::size_t i = 0; i < count; ++i, scalar += scalar_bytes) {
    const std::size_t row = static_cast<std::size_t>(first_row) + i;
    SampleRecord record;
    std::memcpy(&record, scalar, sizeof record);
    if (record.history >= spec.stack || record.steps < 1 || record.steps > spec.n_step
        || !valid_priority(record.priority)
        || !(record.probability >= 0 && record.probability <= 1))
      return false;
    const FramePlan plan(record.history, record.steps, stack);
    if (pictures.size() / layout.frame_bytes < plan.count)
      return false;
    const auto expand = [&](std::uint32_t newest, std::byte* out) {
      for (std::uint32_t k = 0; k < stack; ++k, out += layout.frame_bytes) {
        const std::uint32_t frame = newest + k + 1 > stack ? newest + k + 1 - stack : 0;
        std::memcpy(out, pictures.data() + plan.sent(frame) * layout.frame_bytes,
                    layout.frame_bytes);
      }
    };
    expand(record.history, batch.observation.data() + row * stack * layout.frame_bytes);
    expand(plan.newest, batch.next_observation.data() + row * stack * layout.frame_bytes);
    pictures = pictures.subspan(plan.count * layout.frame_bytes);
    std::memcpy(batch.action.data() + row * layout.action_size, scalar + sizeof record,
                action_bytes);
    batch.reward[row] = record.reward;
    batch.discount[row] = record.discount;
    batch.key[row] = record.key;
    Item choice;
    choice.priority = record.priority;
    choice.probability = record.probability;
    choice.times_sampled = record.times_sampled;
    choice.table_items = header.table_items();
    put_choice(batch, row, choice);
  }
  return pictures.empty();
}

} // namespace troupe::replay
