// libFuzzer target of the messages of a replay data port, in both directions. The first byte of an
// input selects what the table stores. Several messages to one server or client follow. Each begins
// with a byte that is its number of frames; before each part comes its length in two bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "replay/batch/gather.hpp"
#include "replay/service/insertion_decoder.hpp"
#include "replay/service/wire_format.hpp"
#include "replay/table/selector.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/replay/windows.hpp"
#include "tests/replay/writers/goal_episodes.hpp"

namespace {

using namespace troupe::replay;
using troupe::env::ElementType;
using troupe::env::wire::Frame;
using troupe::env::wire::Message;

constexpr std::size_t kRows = 16; // of a batch

/// Transitions, sequences and transitions with hindsight; a further table has kSignature.
const std::vector<TransitionSpec>& specs() {
  static const std::vector<TransitionSpec> made{
      {.frame = {"picture", ElementType::uint8, {1, 2, 3}},
       .vectors = {{"speed", ElementType::float32, {2}}},
       .stack = 2,
       .action_size = 1,
       .n_step = 4},
      {.frame = {"state", ElementType::float32, {3}},
       .stack = 2,
       .action_size = 2,
       .sequence_steps = 3,
       .extras = {{"value", ElementType::float32, {1}}}},
      goal_spec(1)};
  return made;
}

/// A batch of kRows rows, in buffers of exactly the sizes that it needs.
class Batch {
public:
  explicit Batch(const TransitionSpec& spec) {
    const std::size_t steps =
        spec.is_sequence() ? kRows * static_cast<std::size_t>(spec.sequence_steps) : kRows;
    const std::size_t shown = spec.is_sequence() ? steps + kRows : kRows;
    view.observation = room<std::byte>(shown * spec.observation().bytes());
    view.action = room<float>(steps * static_cast<std::size_t>(spec.action_size));
    view.reward = room<float>(steps);
    view.discount = room<float>(steps);
    view.key = room<std::uint64_t>(kRows);
    for (const auto& vector : spec.vectors)
      view.vectors.push_back(room<std::byte>(shown * vector.bytes()));
    for (const auto& extra : spec.extras)
      view.extras.push_back(room<std::byte>(steps * extra.bytes()));
    if (spec.is_sequence()) {
      view.first = room<std::uint8_t>(shown);
      return;
    }
    view.next_observation = room<std::byte>(view.observation.size());
    for (const auto& vector : spec.vectors)
      view.next_vectors.push_back(room<std::byte>(kRows * vector.bytes()));
  }

  BatchView view = {};

private:
  template <class Value>
  std::span<Value> room(std::size_t count) {
    const auto made = std::make_shared<std::vector<Value>>(count);
    memory_.push_back(made);
    return *made;
  }

  std::vector<std::shared_ptr<const void>> memory_;
};

bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

/// All that a sample has of its items' rows.
std::vector<std::byte> bytes_of(const BatchView& view) {
  std::vector<std::byte> all;
  const auto add = [&](const auto& values) {
    const auto bytes = std::as_bytes(values);
    all.insert(all.end(), bytes.begin(), bytes.end());
  };
  add(view.observation);
  add(view.next_observation);
  add(view.action);
  add(view.reward);
  add(view.discount);
  add(view.key);
  add(view.first);
  for (const auto* arrays : {&view.extras, &view.vectors, &view.next_vectors})
    for (const auto& array : *arrays)
      add(array);
  return all;
}

Message sample_of(const Signature& signature, std::span<const Item> items) {
  return encode_sample(RowLayout(signature), 0, 1, 0, items,
                       [](std::size_t bytes) { return Frame(bytes); });
}

wire::Envelope head_of(const Message& message) {
  std::string why;
  const auto head = decode_envelope(message.header, why);
  if (!head)
    __builtin_trap();
  return *head;
}

/// An accepted insertion must encode to a message that decodes to the same insertion.
void expect_again(const Signature& signature, const Insertion& insertion) {
  InsertionDecoder decoder(signature, {.max_chunk_bytes = 1 << 20, .max_writers = 1});
  const Message once = encode_insertion(insertion, 0, true);
  InsertionPtr decoded;
  std::string why;
  if (decoder.decode(head_of(once).insert(), once.frames, decoded, why)
      != InsertionDecoder::Result::insertion)
    __builtin_trap();
  const Message twice = encode_insertion(*decoded, 0, true);
  if (twice.header != once.header || twice.frames.size() != once.frames.size())
    __builtin_trap();
  for (std::size_t i = 0; i < once.frames.size(); ++i)
    if (!same_bytes(once.frames[i].bytes(), twice.frames[i].bytes()))
      __builtin_trap();
}

/// Accepted items, sent as a sample, must arrive as gather() writes them.
void expect_sampled(const TransitionSpec& spec, const Insertion& insertion) {
  std::vector<Item> items;
  for (const Item& item : insertion.items)
    if (items.size() < kRows && is_transition(spec, item))
      items.push_back(item);
  if (items.empty())
    return;
  Batch direct(spec), sent(spec);
  gather(spec, items, direct.view, 0);
  const Message message = sample_of(spec, items);
  if (!decode_sample(spec, RowLayout(spec), head_of(message).sample_part(), message.frames,
                     sent.view, 0)
      || !std::ranges::equal(bytes_of(direct.view), bytes_of(sent.view)))
    __builtin_trap();
}

/// Returns whether both decoders of samples accept a part, or the one for columns if there is no
/// `spec`.
bool decode_part(const Signature& signature, const TransitionSpec* spec,
                 const wire::SamplePart& header, std::vector<Frame> frames) {
  bool accepted = true;
  if (spec != nullptr) {
    Batch batch(*spec);
    accepted = header.count() <= static_cast<std::int64_t>(kRows)
               && decode_sample(*spec, RowLayout(signature), header, frames, batch.view, 0);
  }
  ColumnPart part;
  if (!decode_columns(RowLayout(signature), header, std::move(frames), part))
    return false;
  for (std::size_t column = 0; column < part.columns.size(); ++column) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < part.items.size(); ++i) {
      const auto rows = part.rows(column, i);
      bytes += rows.size();
      volatile const std::byte last = rows.empty() ? std::byte{} : rows.back();
      (void)last;
    }
    if (bytes != part.columns[column].bytes.size())
      __builtin_trap();
  }
  return accepted;
}

/// A server of a table, and its client.
class Port {
public:
  explicit Port(std::size_t kind)
      : spec_(kind < specs().size() ? &specs()[kind] : nullptr),
        signature_(spec_ != nullptr ? Signature(*spec_) : kSignature),
        decoder_(signature_, kLimits) {}

  bool accepts(const std::string& header, std::vector<Frame> frames) {
    std::string why;
    const auto head = decode_envelope(header, why);
    if (head && head->has_sample_part())
      return decode_part(signature_, spec_, head->sample_part(), std::move(frames));
    if (!head || !head->has_insert())
      return false;
    InsertionPtr insertion;
    const auto result = decoder_.decode(head->insert(), frames, insertion, why);
    if (insertion) {
      for (const Item& item : insertion->items)
        if (!valid_priority(item.priority))
          __builtin_trap();
      expect_again(signature_, *insertion);
      if (spec_ != nullptr)
        expect_sampled(*spec_, *insertion);
      insertion.reset();
    }
    if (decoder_.held_bytes() > 2 * kLimits.max_bytes)
      __builtin_trap();
    return result == InsertionDecoder::Result::insertion;
  }

private:
  static constexpr InsertionDecoder::Limits kLimits{
      .max_chunk_bytes = 1 << 20, .max_writers = 4, .max_bytes = 4 << 20};

  const TransitionSpec* spec_; // null: items of any window
  Signature signature_;
  InsertionDecoder decoder_;
};

std::span<const std::uint8_t> take(std::span<const std::uint8_t>& from) {
  if (from.size() < 2)
    return {};
  const std::size_t size =
      std::min<std::size_t>(from[0] + std::size_t{256} * from[1], from.size() - 2);
  const auto taken = from.subspan(2, size);
  from = from.subspan(2 + size);
  return taken;
}

std::string sized(std::span<const std::byte> part) {
  std::string text{static_cast<char>(part.size() % 256), static_cast<char>(part.size() / 256)};
  return text.append(reinterpret_cast<const char*>(part.data()), part.size());
}

std::string text_of(const Message& message) {
  std::string text(1, static_cast<char>(message.frames.size()));
  text += sized(std::as_bytes(std::span(message.header)));
  for (const Frame& frame : message.frames)
    text += sized(frame.bytes());
  return text;
}

/// Ten steps of an episode, or a whole one with hindsight.
InsertionPtr episode_of(const TransitionSpec& spec) {
  if (spec.has_hindsight()) {
    Writer writer = hindsight_transition_writer(spec, 3, 5, line_goal());
    GoalPlayer(9).episode(writer);
    return writer.take();
  }
  Writer writer = transition_writer(spec, 3, 8);
  const std::vector<float> action(static_cast<std::size_t>(spec.action_size), 0.5F);
  for (int row = 0; row <= 10; ++row) {
    for (std::size_t column = 0; column < writer.layout().columns.size(); ++column)
      std::ranges::fill(writer.next(column), static_cast<std::byte>(row));
    if (row == 0)
      begin_episode(writer);
    else
      append_step(writer, action, 1, 1, row == 10);
  }
  return writer.take();
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  std::vector<std::string> seeds;
  const auto add = [&](std::size_t kind, const std::vector<Message>& messages) {
    std::string& seed = seeds.emplace_back(1, static_cast<char>(kind));
    for (const Message& message : messages)
      seed += text_of(message);
  };
  for (std::size_t kind = 0; kind <= specs().size(); ++kind) {
    const bool is_window = kind == specs().size();
    WindowSource source(1, 8, 20, 4);
    const InsertionPtr made = is_window ? source.next(12, 5) : episode_of(specs()[kind]);
    const std::span<const Item> items(made->items);
    const Signature signature = is_window ? kSignature : Signature(specs()[kind]);
    std::vector<Message> insertions;
    insertions.push_back(encode_insertion(*made, 0, false));
    if (is_window) // of rows that the decoder has from the first one
      insertions.push_back(encode_insertion(*source.next(2, 3), 0, false));
    add(kind, insertions);
    std::vector<Message> sample;
    sample.push_back(sample_of(signature, items.first(std::min<std::size_t>(items.size(), 4))));
    sample.push_back(sample_of(signature, items.last(1)));
    add(kind, sample);
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  Port port(data[0] % (specs().size() + 1));
  bool accepted = true;
  for (auto left = std::span(data, size).subspan(1); !left.empty();) {
    const int count = left[0] % 16;
    left = left.subspan(1);
    const auto header = take(left);
    std::vector<Frame> frames;
    for (int i = 0; i < count; ++i)
      frames.emplace_back(std::as_bytes(take(left)));
    accepted =
        port.accepts(std::string(header.begin(), header.end()), std::move(frames)) && accepted;
  }
  return troupe::fuzz_result(accepted);
}
