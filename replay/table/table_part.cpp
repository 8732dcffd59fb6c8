// Loads one of M tables from N saved ones, after the number of shards has changed.
#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

#include "env/split_mix.hpp"
#include "replay/table/random.hpp"
#include "replay/table/reshard.hpp"
#include "replay/table/table_loader.hpp"

namespace troupe::replay {

namespace {

constexpr std::uint32_t kNotTaken = 0xffffffffU; // index of a chunk that is not in the part

struct Source {
  Source(const std::filesystem::path& folder, const TableState& into) : table(folder, into, true) {
    chunk.resize(static_cast<std::size_t>(table.head.chunks_size()), kNotTaken);
  }

  SavedTable table;
  std::vector<std::uint32_t> chunk;  // where each of its chunks is in the part
  std::vector<std::uint32_t> shapes; // where each of its shapes is in the part
};

struct Taken {
  std::size_t source = 0;
  std::uint64_t item = 0;
  double age = 0; // 0: the oldest in its table, 1: the newest
};

std::vector<Taken> choose(const std::deque<Source>& sources, std::uint32_t part,
                          std::uint32_t parts) {
  std::vector<std::uint64_t> counts;
  for (const Source& source : sources)
    counts.push_back(source.table.head.items());
  const auto ranges = reshard(counts, part, parts);
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (const ItemRange& range : ranges[i])
      for (std::uint64_t item = range.begin; item < range.end; ++item)
        taken.push_back(
            {i, item, (static_cast<double>(item) + 0.5) / static_cast<double>(counts[i])});
  std::stable_sort(taken.begin(), taken.end(),
                   [](const Taken& a, const Taken& b) { return a.age < b.age; });
  return taken;
}

/// Divides the counters among the parts; their sums stay the same.
wire::SavedTable part_of_counters(const std::deque<Source>& sources, std::uint32_t part,
                                  std::uint32_t parts) {
  wire::SavedTable head;
  const auto share = [&](auto get) {
    std::uint64_t total = 0;
    for (const Source& source : sources)
      total += static_cast<std::uint64_t>(get(source.table.head));
    return even_share(total, part, parts);
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
    for (const std::uint64_t word : source.table.head.random())
      seed = env::split_mix(seed) ^ word;
    head.set_greatest_priority(
        std::max(head.greatest_priority(), source.table.head.greatest_priority()));
    head.set_insertions(std::max(head.insertions(), source.table.head.insertions()));
  }
  for (const std::uint64_t word : Random(seed).state)
    head.add_random(word);
  return head;
}

/// Makes every part remember all insertions of every writer, so that it accepts none of them again.
void join_writers(const std::deque<Source>& sources, wire::SavedTable& head) {
  std::map<std::uint64_t, wire::SavedWriter> all;
  for (const Source& source : sources)
    for (const wire::SavedWriter& saved : source.table.head.writers()) {
      auto [at, fresh] = all.emplace(saved.writer(), saved);
      if (fresh)
        continue;
      wire::SavedWriter& known = at->second;
      const auto [newer, older] =
          known.newest() >= saved.newest() ? std::pair(known, saved) : std::pair(saved, known);
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
  SavedItems items;
  std::vector<ShapePtr> shapes{nullptr};
  std::vector<StoredChunk> chunks;
  std::uint64_t first_chunk = 0; // greater than all chunk numbers of the sources, for checkpoints
};

void join_shapes(std::deque<Source>& sources, std::vector<ShapePtr>& shapes) {
  std::map<ItemShape, std::uint32_t> known;
  for (Source& source : sources)
    for (const ShapePtr& shape : source.table.shapes) {
      std::uint32_t number = 0;
      if (shape)
        number = known.emplace(*shape, static_cast<std::uint32_t>(shapes.size())).first->second;
      if (number == shapes.size())
        shapes.push_back(shape);
      source.shapes.push_back(number);
    }
}

/// Adds a chunk of the source to the part unless it is there already, and returns its index.
std::uint32_t take_chunk(Source& source, std::uint32_t at, Part& part) {
  if (source.chunk[at] != kNotTaken)
    return source.chunk[at];
  source.chunk[at] = static_cast<std::uint32_t>(part.chunks.size());
  wire::SavedChunk chunk = source.table.head.chunks(static_cast<int>(at));
  const BlobKey key{chunk.number(), chunk.low(), chunk.high()};
  chunk.set_number(part.first_chunk + part.chunks.size());
  chunk.clear_next();
  part.chunks.push_back({std::move(chunk), &source.table, key});
  return source.chunk[at];
}

void take_item(Source& source, std::uint64_t item, Part& part) {
  const SavedItems& from = source.table.items;
  ItemWindow window = from.windows[item];
  std::uint32_t at = window.chunk;
  std::uint32_t here = take_chunk(source, at, part);
  const std::uint32_t capacity = part.chunks[here].chunk.capacity();
  window.chunk = here;
  for (std::uint32_t left = (window.begin + window.rows - 1) / capacity; left > 0; --left) {
    at = source.table.head.chunks(static_cast<int>(at)).next() - 1; // checked by SavedTable
    const std::uint32_t next = take_chunk(source, at, part);
    part.chunks[here].chunk.set_next(1 + next);
    here = next;
  }
  window.shape = source.shapes[window.shape];
  part.items.windows.push_back(window);
  part.items.times.push_back(from.times[item]);
  part.items.priorities.push_back(from.priorities.empty() ? 1 : from.priorities[item]);
  part.items.keys.push_back(part.head.first_key() + part.items.keys.size());
}

} // namespace

TableState load_table_part(const TableState& into, std::span<const std::filesystem::path> folders,
                           std::uint32_t part, std::uint32_t parts) {
  if (folders.empty() || part >= parts)
    throw std::invalid_argument(
        "part " + std::to_string(part) + " of " + std::to_string(parts) + " of "
        + std::to_string(folders.size())
        + " tables: there must be a table, and more parts than the part's number");
  std::deque<Source> sources;
  for (const auto& folder : folders)
    sources.emplace_back(folder, into);
  Part made{.head = part_of_counters(sources, part, parts), .items = {}, .chunks = {}};
  for (const Source& source : sources)
    made.first_chunk = std::max(made.first_chunk, source.table.head.next_chunk());
  join_writers(sources, made.head);
  join_shapes(sources, made.shapes);
  for (const Taken& taken : choose(sources, part, parts))
    take_item(sources[taken.source], taken.item, made);
  made.head.set_next_chunk(made.first_chunk + made.chunks.size());
  return build_table(into, made.head, std::move(made.items), made.shapes, made.chunks, false);
}

} // namespace troupe::replay
