// A table as a file: magic, version, then blocks (block_file.hpp): the head (SavedTable), the
// items, and for each chunk its rows and their flags.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "replay/block_file.hpp"
#include "replay/replay.pb.h"
#include "replay/spec_text.hpp"
#include "replay/table.hpp"

namespace troupe::replay {

namespace {

constexpr char kMagic[8] = {'T', 'R', 'P', 'T', 'A', 'B', 'L', 'E'};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kItemsPerBlock = 1 << 20;
constexpr std::uint64_t kMaxChunkBytes = std::uint64_t{2} << 30;
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

TransitionSpec spec_of(const wire::Spec& from) {
  TransitionSpec spec;
  spec.frame = {from.frame_name(),
                static_cast<env::ElementType>(from.frame_type()),
                {from.frame_shape().begin(), from.frame_shape().end()}};
  spec.stack = from.stack();
  spec.action_size = from.action_size();
  spec.n_step = from.n_step();
  spec.discount = from.discount();
  return spec;
}

void put(const TransitionSpec& spec, wire::Spec& to) {
  to.set_frame_name(spec.frame.name);
  to.set_frame_type(static_cast<std::uint32_t>(spec.frame.type));
  for (const std::int64_t n : spec.frame.shape)
    to.add_frame_shape(n);
  to.set_stack(spec.stack);
  to.set_action_size(spec.action_size);
  to.set_n_step(spec.n_step);
  to.set_discount(spec.discount);
}

TableConfig config_of(const wire::Config& from) {
  return {from.max_items(),          from.max_bytes(),    from.min_items(),
          from.samples_per_insert(), from.error_buffer(), from.deterministic()};
}

void put(const TableConfig& config, wire::Config& to) {
  to.set_max_items(config.max_items);
  to.set_max_bytes(config.max_bytes);
  to.set_min_items(config.min_items);
  to.set_samples_per_insert(config.samples_per_insert);
  to.set_error_buffer(config.error_buffer);
  to.set_deterministic(config.deterministic);
}

std::string difference(const TableConfig& file, const TableConfig& mine) {
  std::ostringstream text;
  const auto compare = [&](const char* key, auto saved, auto now) {
    if (saved != now)
      text << (text.tellp() > 0 ? ", " : "") << "replay." << key << " was " << saved << " and is "
           << now;
  };
  compare("max_items", file.max_items, mine.max_items);
  compare("max_bytes", file.max_bytes, mine.max_bytes);
  compare("min_items", file.min_items, mine.min_items);
  compare("samples_per_insert", file.samples_per_insert, mine.samples_per_insert);
  compare("error_buffer", file.error_buffer, mine.error_buffer);
  compare("deterministic", file.deterministic, mine.deterministic);
  return text.str();
}

} // namespace

/// Reaches into a Table to write it down and to build it again.
struct TableFile {
  static wire::SavedTable head(const Table& table) {
    wire::SavedTable head;
    put(table.spec_, *head.mutable_spec());
    put(table.config_, *head.mutable_config());
    for (const std::uint64_t word : table.random_)
      head.add_random(word);
    head.set_begin(table.begin_);
    head.set_end(table.end_);
    head.set_sampled(table.sampled_);
    head.set_dropped_duplicates(table.dropped_duplicates_);
    head.set_limiter_inserted(table.limiter_inserted_);
    head.set_limiter_sampled(table.limiter_sampled_);
    head.set_insertions(table.insertions_);
    std::vector<std::uint64_t> ids; // sorted: the same table gives the same file
    for (const auto& [id, sequences] : table.writers_)
      ids.push_back(id);
    std::sort(ids.begin(), ids.end());
    for (const std::uint64_t id : ids) {
      const Table::Sequences& sequences = table.writers_.at(id);
      wire::SavedWriter& saved = *head.add_writers();
      saved.set_writer(id);
      saved.set_newest(sequences.newest);
      saved.set_seen(sequences.seen);
      saved.set_used(sequences.used);
    }
    return head;
  }

  static std::size_t row_bytes(const Chunk& chunk) { return chunk.layout().row_bytes; }

  static void save(const Table& table, const std::string& path) {
    wire::SavedTable head = TableFile::head(table);
    std::vector<std::uint32_t> position(table.held_.size(), kNone); // in the file
    for (std::size_t i = 0; i < table.held_.size(); ++i) {
      const Table::Held& held = table.held_[i];
      if (!held.chunk)
        continue;
      position[i] = static_cast<std::uint32_t>(head.chunks_size());
      wire::SavedChunk& saved = *head.add_chunks();
      saved.set_id(held.chunk->id());
      saved.set_capacity(held.chunk->capacity());
      saved.set_low(held.low);
      saved.set_high(held.high);
    }
    BlockWriter file(path);
    file.raw(kMagic, sizeof kMagic);
    file.raw(&kVersion, sizeof kVersion);
    const std::string bytes = head.SerializeAsString();
    file.block(bytes.data(), bytes.size());
    std::vector<Table::Slot> slots;
    for (std::uint64_t key = table.begin_; key < table.end_;) {
      slots.clear();
      for (; key < table.end_ && slots.size() < kItemsPerBlock; ++key) {
        Table::Slot slot = table.ring_[key & (table.ring_.size() - 1)];
        slot.chunk = position[slot.chunk];
        slot.next_chunk = slot.next_chunk == kNone ? kNone : position[slot.next_chunk];
        slots.push_back(slot);
      }
      file.block(slots.data(), slots.size() * sizeof(Table::Slot));
    }
    for (const Table::Held& held : table.held_) {
      if (!held.chunk)
        continue;
      file.block(held.chunk->row(held.low), (held.high - held.low) * row_bytes(*held.chunk));
      file.block(held.chunk->flags() + held.low, held.high - held.low);
    }
    file.commit();
  }

  static wire::SavedTable load_head(BlockReader& file) {
    char magic[sizeof kMagic];
    std::uint64_t version = 0;
    file.raw(magic, sizeof magic);
    if (std::memcmp(magic, kMagic, sizeof magic) != 0)
      file.fail("is not a replay table");
    file.raw(&version, sizeof version);
    if (version != kVersion)
      file.fail("has version " + std::to_string(version) + " of the format, this program reads "
                + std::to_string(kVersion));
    std::string bytes(file.begin_block(kMaxHeadBytes), '\0');
    file.unpack(bytes.data(), bytes.size());
    wire::SavedTable head;
    if (!head.ParseFromString(bytes) || head.random_size() != 4 || head.begin() > head.end()
        || head.spec().frame_type() > static_cast<std::uint32_t>(env::ElementType::int64))
      file.fail("is damaged: its head makes no sense");
    return head;
  }

  /// Refuses other transitions, another configuration, and more memory than that allows.
  static void compare(const BlockReader& file, const wire::SavedTable& head, const Table& table,
                      Table::ConfigChange change) {
    const TransitionSpec spec = spec_of(head.spec());
    if (spec != table.spec_)
      file.fail("holds other transitions: " + describe(spec) + "; this experiment has "
                + describe(table.spec_));
    const TableConfig config = config_of(head.config());
    const std::string changed = difference(config, table.config_);
    if (!changed.empty() && change == Table::ConfigChange::refuse)
      throw std::runtime_error(file.path() + " was saved with another configuration: " + changed
                               + "; resume with the former values, or accept the change");
    std::uint64_t bytes = 0;
    std::uint64_t largest = 0;
    for (const wire::SavedChunk& chunk : head.chunks()) {
      const std::uint64_t size = chunk.capacity() * RowLayout(spec).row_bytes;
      if (size > kMaxChunkBytes || chunk.low() >= chunk.high() || chunk.high() > chunk.capacity())
        file.fail("is damaged: a chunk makes no sense");
      bytes += size;
      largest = std::max(largest, size);
    }
    // The newest item stays whatever its size, and it may lie in two chunks.
    if (head.end() - head.begin()
            > static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_items))
        || bytes > 2 * largest
                       + static_cast<std::uint64_t>(std::max<std::int64_t>(0, config.max_bytes)))
      file.fail("is damaged: it holds more than its limits");
  }

  static void load_slots(BlockReader& file, const wire::SavedTable& head, Table& table) {
    std::uint64_t size = 1024;
    while (size < head.end() - head.begin())
      size *= 2;
    table.ring_.resize(size);
    std::vector<Table::Slot> slots;
    for (std::uint64_t key = head.begin(); key < head.end();) {
      slots.resize(std::min(kItemsPerBlock, head.end() - key));
      file.block(slots.data(), slots.size() * sizeof(Table::Slot));
      for (const Table::Slot& slot : slots)
        table.ring_[key++ & (size - 1)] = check_slot(file, head, table.spec_, slot);
    }
    table.begin_ = head.begin();
    table.end_ = head.end();
  }

  static const Table::Slot& check_slot(const BlockReader& file, const wire::SavedTable& head,
                                       const TransitionSpec& spec, const Table::Slot& slot) {
    const auto chunks = static_cast<std::uint32_t>(head.chunks_size());
    bool fine = slot.chunk < chunks && slot.history < spec.stack && slot.steps >= 1
                && slot.steps <= spec.n_step
                && (slot.next_chunk == kNone || slot.next_chunk < chunks);
    if (fine) {
      const wire::SavedChunk& first = head.chunks(static_cast<int>(slot.chunk));
      const std::uint64_t end = std::uint64_t{slot.begin} + slot.history + slot.steps + 1;
      fine = slot.begin >= first.low() && slot.begin < first.high()
             && (slot.next_chunk == kNone) == (end <= first.capacity())
             && std::min<std::uint64_t>(end, first.capacity()) <= first.high();
      if (fine && slot.next_chunk != kNone) {
        const wire::SavedChunk& next = head.chunks(static_cast<int>(slot.next_chunk));
        fine = next.low() == 0 && end - first.capacity() <= next.high();
      }
    }
    if (!fine)
      file.fail("is damaged: an item lies outside its chunks");
    return slot;
  }

  static void load_chunks(BlockReader& file, const wire::SavedTable& head, Table& table) {
    for (const wire::SavedChunk& saved : head.chunks()) {
      const auto chunk = std::make_shared<Chunk>(table.spec_, saved.id(), saved.capacity());
      const std::uint32_t rows = saved.high() - saved.low();
      file.block(chunk->row(saved.low()), rows * row_bytes(*chunk));
      file.block(chunk->flags() + saved.low(), rows);
      table.held_of_[chunk.get()] = static_cast<std::uint32_t>(table.held_.size());
      table.bytes_ += static_cast<std::int64_t>(chunk->bytes());
      table.held_.push_back({chunk, 0, saved.low(), saved.high()});
    }
    for (std::uint64_t key = table.begin_; key < table.end_; ++key) {
      const Table::Slot& slot = table.ring_[key & (table.ring_.size() - 1)];
      ++table.held_[slot.chunk].items;
      if (slot.next_chunk != kNone)
        ++table.held_[slot.next_chunk].items;
    }
    for (const Table::Held& held : table.held_)
      if (held.items == 0)
        file.fail("is damaged: no item refers to one of its chunks");
    file.end();
  }

  static void load_counters(const wire::SavedTable& head, Table& table) {
    std::copy(head.random().begin(), head.random().end(), table.random_.begin());
    table.sampled_ = head.sampled();
    table.dropped_duplicates_ = head.dropped_duplicates();
    table.limiter_inserted_ = head.limiter_inserted();
    table.limiter_sampled_ = head.limiter_sampled();
    table.insertions_ = head.insertions();
    for (const wire::SavedWriter& saved : head.writers())
      table.writers_[saved.writer()] = {saved.newest(), saved.seen(), saved.used()};
  }

  static void load(Table& table, const std::string& path, Table::ConfigChange change) {
    BlockReader file(path);
    const wire::SavedTable head = load_head(file);
    compare(file, head, table, change);
    Table fresh(table.config_, table.spec_, 0);
    load_slots(file, head, fresh);
    load_chunks(file, head, fresh);
    load_counters(head, fresh);
    if (config_of(head.config()) != table.config_) { // counters of another limiter mean nothing
      while (fresh.end_ - fresh.begin_ > static_cast<std::uint64_t>(fresh.config_.max_items)
             || (fresh.bytes_ > fresh.config_.max_bytes && fresh.end_ - fresh.begin_ > 1))
        fresh.remove_oldest();
      fresh.limiter_inserted_ =
          std::min(static_cast<std::int64_t>(fresh.end_ - fresh.begin_), fresh.config_.min_items);
      fresh.limiter_sampled_ = 0;
    }
    table = std::move(fresh);
  }
};

void Table::save(const std::string& path) const {
  TableFile::save(*this, path);
}

void Table::load(const std::string& path, ConfigChange change) {
  TableFile::load(*this, path, change);
}

} // namespace troupe::replay
