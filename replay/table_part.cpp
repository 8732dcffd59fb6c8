// A table out of parts of several saved ones: shards of which there are now more, or fewer.
#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "env/split_mix.hpp"
#include "replay/deal.hpp"
#include "replay/random.hpp"
#include "replay/table_loader.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kNotTaken = 0xffffffffU; // of a chunk

struct Source {
  explicit Source(const std::filesystem::path& folder)
      : from(folder), file(from.header(), folder.string()), head(TableLoader::load_head(file)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  CheckpointReader from;
  BlockReader file;
  wire::SavedTable head;
  TableLoader::Items items;
  std::vector<std::uint32_t> chunk;  // where each of head's chunks is in the part
  std::vector<std::uint32_t> shapes; // where each of its shapes is
};

struct Taken {
  std::size_t source = 0;
  std::uint64_t item = 0;
  double age = 0; // 0: the oldest of its table, 1: the newest
};

std::vector<Taken> choose(const std::deque<Source>& sources, std::uint32_t part,
                          std::uint32_t parts) {
  std::vector<std::uint64_t> counts;
  for (const Source& source : sources)
    counts.push_back(source.head.items());
  const auto ranges = deal(counts, part, parts);
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const DealtRange& range : ranges[i])
      for (std::uint64_t item = range.begin; item < range.end; ++item)
        taken.push_back(
            {i, item, (static_cast<double>(item) + 0.5) / static_cast<double>(counts[i])});
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Taken& a, const Taken& b) { return a.age < b.age; });
  return taken;
}

/// Counters are dealt out like items: their sums stay.
wire::SavedTable part_of_counters(const std::deque<Source>& sources, std::uint32_t part,
                                  std::uint32_t parts) {
  wire::SavedTable head;
  const auto share = [&](auto get) {
    std::uint64_t total = 0;
    for (const Source& source : sources)
      total += static_cast<std::uint64_t>(get(source.head));
    return dealt_share(total, part, parts);
  };
  const auto number = [&](auto get) { return static_cast<std::int64_t>(share(get)); };
  using Head = const wire::SavedTable&;
  head.set_items(share([](Head h) { return h.items(); }));
  head.set_end(share([](Head h) { return h.end(); }));
  head.set_sampled(number([](Head h) { return h.sampled(); }));
  head.set_dropped_duplicates(number([](Head h) { return h.dropped_duplicates(); }));
  head.set_updated_priorities(number([](Head h) { return h.updated_priorities(); }));
  head.set_late_priorities(number([](Head h) { return h.late_priorities(); }));
  head.set_first_key(head.end() - head.items());
  std::uint64_t seed = part + 1;
  for (const Source& source : sources) {
    for (const std::uint64_t word : source.head.random())
      seed = env::split_mix(seed) ^ word;
    head.set_greatest_priority(std::max(head.greatest_priority(), source.head.greatest_priority()));
    head.set_insertions(std::max(head.insertions(), source.head.insertions()));
  }
  for (const std::uint64_t word : Random(seed).state)
    head.add_random(word);
  return head;
}

/// Every part knows what each writer has inserted: nothing is taken a second time.
void join_writers(const std::deque<Source>& sources, wire::SavedTable& head) {
  std::map<std::uint64_t, wire::SavedWriter> all;
  for (const Source& source : sources)
    for (const wire::SavedWriter& told : source.head.writers()) {
      auto [at, fresh] = all.emplace(told.writer(), told);
      if (fresh)
        continue;
      wire::SavedWriter& known = at->second;
      const auto [newer, older] =
          known.newest() >= told.newest() ? std::pair(known, told) : std::pair(told, known);
      const std::uint64_t behind = newer.newest() - older.newest();
      known.set_newest(newer.newest());
      known.set_seen(newer.seen() | (behind < 64 ? older.seen() << behind : 0));
      known.set_used(std::max(newer.used(), older.used()));
    }
  for (const auto& [id, writer] : all)
    *head.add_writers() = writer;
}

struct Part {
  wire::SavedTable head;
  TableLoader::Items items;
  std::vector<TableLoader::Stored> stored; // of head's chunks
  std::uint64_t first_chunk = 0;           // above the numbers of all sources, for checkpoints
};

void join_shapes(std::deque<Source>& sources, TableLoader::Items& items) {
  std::map<ItemShape, std::uint32_t> known;
  for (Source& source : sources)
    for (const ShapePtr& shape : source.items.shapes) {
      std::uint32_t number = 0;
      if (shape)
        number =
            known.emplace(*shape, static_cast<std::uint32_t>(items.shapes.size())).first->second;
      if (number == items.shapes.size())
        items.shapes.push_back(shape);
      source.shapes.push_back(number);
    }
}

/// Where this chunk of the source is in the part.
std::uint32_t take_chunk(Source& source, std::uint32_t at, Part& part) {
  if (source.chunk[at] != kNotTaken)
    return source.chunk[at];
  const wire::SavedChunk& saved = source.head.chunks(static_cast<int>(at));
  source.chunk[at] = static_cast<std::uint32_t>(part.stored.size());
  wire::SavedChunk& mine = *part.head.add_chunks();
  mine = saved;
  mine.set_number(part.first_chunk + part.stored.size());
  mine.clear_next();
  part.stored.push_back({&source.from, &source.file, {saved.number(), saved.low(), saved.high()}});
  return source.chunk[at];
}

void take_item(Source& source, std::uint64_t item, Part& part) {
  auto slot = source.items.slots[item];
  std::uint32_t at = slot.chunk;
  std::uint32_t here = take_chunk(source, at, part);
  const std::uint32_t capacity = source.head.chunks(static_cast<int>(at)).capacity();
  slot.chunk = here;
  for (std::uint32_t left = (slot.begin + slot.rows - 1) / capacity; left > 0; --left) {
    at = source.head.chunks(static_cast<int>(at)).next() - 1; // load_items() has looked at it
    const std::uint32_t next = take_chunk(source, at, part);
    part.head.mutable_chunks(static_cast<int>(here))->set_next(1 + next);
    here = next;
  }
  slot.shape = source.shapes[slot.shape];
  part.items.slots.push_back(slot);
  part.items.times.push_back(source.items.times[item]);
  part.items.priorities.push_back(source.items.priorities.empty() ? 1
                                                                  : source.items.priorities[item]);
  part.items.keys.push_back(part.head.first_key() + part.items.keys.size());
}

} // namespace

std::int64_t TableLoader::load_part(Table& table, std::span<const std::filesystem::path> folders,
                                    std::uint32_t part, std::uint32_t parts) {
  if (folders.empty() || part >= parts)
    throw std::invalid_argument("part " + std::to_string(part) + " of " + std::to_string(parts)
                                + " of " + std::to_string(folders.size())
                                + " tables: there must be a table, and parts above the part");
  std::deque<Source> sources;
  for (const auto& folder : folders) {
    Source& source = sources.emplace_back(folder);
    compare(source.file, source.head, table, Table::ConfigChange::accept);
    source.items = load_items(source.file, source.head,
                              saved_table(source.file, source.head, table.signature_));
    source.chunk.resize(static_cast<std::size_t>(source.head.chunks_size()), kNotTaken);
  }
  Part made{.head = part_of_counters(sources, part, parts), .items = {}, .stored = {}};
  for (const Source& source : sources)
    made.first_chunk = std::max(made.first_chunk, source.head.next_chunk());
  join_writers(sources, made.head);
  join_shapes(sources, made.items);
  for (const Taken& taken : choose(sources, part, parts))
    take_item(sources[taken.source], taken.item, made);
  made.head.set_next_chunk(made.first_chunk + made.stored.size());
  Table fresh(table.config_, table.signature_, 0);
  fresh.extensions_ = table.extensions_;
  fresh.store_ = table.store_;
  place_items(made.items, made.head, false, fresh);
  load_chunks(made.stored, made.head, fresh);
  load_counters(made.head, fresh);
  const std::int64_t before = fresh.size();
  keep_to_limits(fresh);
  table = std::move(fresh);
  return before - table.size();
}

std::int64_t Table::load_part(std::span<const std::filesystem::path> folders, std::uint32_t part,
                              std::uint32_t parts) {
  return TableLoader::load_part(*this, folders, part, parts);
}

} // namespace troupe::replay
