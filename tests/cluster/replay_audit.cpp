// Follows the items of a run's replay shards through the successive snapshots and checkpoints that
// the shards wrote.
//
// Usage: replay_audit [--every N] FOLDER… [-- FOLDER…]…
//   table checkpoints of a shard, oldest first; `--` before those of the next shard
//
// Prints a line for each folder: insertions; refused (duplicate insertions); gaps (sequence numbers
// of writers that have been missing since the previous folder although newer ones arrived);
// forgotten (numbers that the previous folder has and this one lacks). For each N-th folder and the
// last (by default all) also items, lost (items of an earlier folder that are missing) and twice
// (duplicates). The last line counts items that are in the last folders of more than one shard. An
// item is identified by the bytes of its steps: rewards and noise make them unique.
//
// Exit code: 0 nothing lost, forgotten or duplicated; 1 something was; 2 a folder cannot be read,
// or items were removed for lack of room.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/replay.pb.h"
#include "replay/storage/blocks.hpp"
#include "replay/storage/checkpoint_reader.hpp"
#include "replay/storage/segment_file.hpp"
#include "replay/table/table.hpp"
#include "replay/table/table_checkpoint.hpp"
#include "replay/table/table_config_wire.hpp"

namespace troupe::replay {
namespace {

using Counts = std::unordered_map<std::uint64_t, int>; // of items, by checksum

struct Saved {
  Counts items; // empty if not requested
  std::map<std::uint64_t, wire::SavedWriter> writers;
  std::int64_t insertions = 0, refused = 0;
};

wire::SavedTable head_of(const std::filesystem::path& folder) {
  const CheckpointReader reader(folder);
  BlockReader in(reader.header(), folder.string());
  char magic[sizeof kTableMagic];
  std::uint64_t version = 0;
  in.raw(magic, sizeof magic);
  in.raw(&version, sizeof version);
  std::string bytes(in.begin_block(std::uint64_t{64} << 20), '\0');
  in.unpack(bytes.data(), bytes.size());
  wire::SavedTable head;
  if (version != kTableVersion || !head.ParseFromString(bytes))
    in.fail("is no table of this version");
  return head;
}

/// The rows of chunks, each chunk decoded once.
class Rows {
public:
  const std::byte* at(const Item& item, std::uint32_t row) {
    const std::uint32_t place = item.begin + row;
    const Chunk& chunk = *item.chunks[place / item.chunks[0]->capacity()];
    const std::uint32_t within = place % chunk.capacity();
    if (!chunk.encoded())
      return chunk.row(within);
    auto& kept = rows_[{&chunk, within}];
    if (kept.empty()) {
      kept.resize(chunk.layout().row_bytes);
      chunk.decode(within, 1, kept.data(), scratch_);
    }
    return kept.data();
  }

private:
  CodecScratch scratch_;
  std::map<std::pair<const Chunk*, std::uint32_t>, std::vector<std::byte>> rows_;
};

std::uint64_t checksum(const Item& item, Rows& rows) {
  std::vector<std::byte> bytes(1, static_cast<std::byte>(item.history));
  for (std::uint32_t i = 0; i < item.rows; ++i)
    for (const auto& column : item.chunks[0]->layout().columns) { // without padding in between
      const std::byte* first = rows.at(item, i) + column.offset;
      bytes.insert(bytes.end(), first, first + column.bytes);
    }
  return checksum_of(bytes);
}

Counts items_of(const std::filesystem::path& folder, const wire::SavedTable& head) {
  Table table(config_of(head.config()), signature_of(head.signature()), 1);
  table.load(folder);
  Counts items;
  Rows rows;
  for (std::uint64_t key = 0; key < head.end(); ++key)
    ++items[checksum(table.item(key), rows)];
  return items;
}

Saved read(const std::filesystem::path& folder, bool with_items) {
  const wire::SavedTable head = head_of(folder);
  if (head.first_key() > 0)
    throw std::runtime_error(folder.string() + ": " + std::to_string(head.first_key())
                             + " items left for want of room; give the run's replay more");
  Saved saved;
  if (with_items)
    saved.items = items_of(folder, head);
  for (const auto& writer : head.writers())
    saved.writers[writer.writer()] = writer;
  saved.insertions = static_cast<std::int64_t>(head.insertions());
  saved.refused = head.dropped_duplicates();
  return saved;
}

/// The newest 64 sequence numbers of each writer are known individually.
constexpr std::uint64_t kKnown = 64;

std::uint64_t oldest_known(const wire::SavedWriter& writer) {
  return writer.newest() >= kKnown ? writer.newest() - kKnown + 1 : 1;
}

bool has(const wire::SavedWriter& writer, std::uint64_t number) { // from oldest_known() on
  return number <= writer.newest() && (writer.seen() >> (writer.newest() - number) & 1U) != 0;
}

struct Sequences {
  std::int64_t gaps = 0, forgotten = 0;
};

/// A table counts all insertions, so the number of gaps is known even beyond the newest 64. Gaps
/// that were filled later were gaps of an earlier folder.
Sequences sequences_since(const Saved& before, const Saved& now) {
  Sequences made;
  const wire::SavedWriter none;
  std::int64_t numbers = 0, filled = 0;
  for (const auto& [id, old] : before.writers) {
    const auto at = now.writers.find(id);
    const wire::SavedWriter& writer = at == now.writers.end() ? none : at->second;
    for (std::uint64_t number = std::max(oldest_known(old), oldest_known(writer));
         number <= old.newest(); ++number) {
      made.forgotten += has(old, number) && !has(writer, number) ? 1 : 0;
      filled += !has(old, number) && has(writer, number) ? 1 : 0;
    }
  }
  for (const auto& [id, writer] : now.writers) {
    const auto at = before.writers.find(id);
    numbers += static_cast<std::int64_t>(writer.newest())
               - static_cast<std::int64_t>(at == before.writers.end() ? 0 : at->second.newest());
  }
  const std::int64_t came = now.insertions - before.insertions - (now.refused - before.refused);
  made.gaps = numbers - (came - filled);
  return made;
}

std::int64_t missing_in(const Counts& now, const Counts& before) {
  return std::count_if(before.begin(), before.end(),
                       [&](const auto& item) { return !now.contains(item.first); });
}

std::int64_t more_than_once(const Counts& items) {
  std::int64_t twice = 0;
  for (const auto& [item, count] : items)
    twice += count - 1;
  return twice;
}

/// Prints the line of each folder of a shard, and returns the items of the last one. Sets `sound`
/// to false on a loss.
Counts audit(std::size_t shard, const std::vector<std::string>& folders, std::size_t every,
             bool& sound) {
  Saved before;
  Counts items; // of the last folder for which they were requested
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const bool with_items = i % every == 0 || i + 1 == folders.size();
    Saved now = read(folders[i], with_items);
    const Sequences numbers = // the first folder may be a resumed run's
        i == 0 ? Sequences{} : sequences_since(before, now);
    sound = sound && numbers.forgotten == 0;
    std::printf("shard=%zu folder=%s insertions=%lld refused=%lld gaps=%lld forgotten=%lld", shard,
                folders[i].c_str(), static_cast<long long>(now.insertions),
                static_cast<long long>(now.refused), static_cast<long long>(numbers.gaps),
                static_cast<long long>(numbers.forgotten));
    if (with_items) {
      const std::int64_t lost = missing_in(now.items, items);
      const std::int64_t twice = more_than_once(now.items);
      sound = sound && lost == 0 && twice == 0;
      std::printf(" items=%zu lost=%lld twice=%lld", now.items.size(), static_cast<long long>(lost),
                  static_cast<long long>(twice));
      items = now.items;
    }
    std::printf("\n");
    before = std::move(now);
  }
  return items;
}

int run(std::vector<std::string> words) {
  std::vector<std::vector<std::string>> shards(1);
  std::size_t every = 1;
  if (words.size() > 1 && words[0] == "--every") {
    every = std::max<std::size_t>(1, std::stoul(words[1]));
    words.erase(words.begin(), words.begin() + 2);
  }
  for (const std::string& word : words)
    if (word == "--")
      shards.emplace_back();
    else
      shards.back().push_back(word);
  bool sound = true;
  Counts all;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const auto& [item, count] : audit(i, shards[i], every, sound))
      ++all[item];
  const std::int64_t shared = more_than_once(all);
  std::printf("shards=%zu items=%zu in_several=%lld\n", shards.size(), all.size(),
              static_cast<long long>(shared));
  return sound && shared == 0 ? 0 : 1;
}

} // namespace
} // namespace troupe::replay

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: replay_audit [--every N] FOLDER… [-- FOLDER…]…\n");
    return 2;
  }
  try {
    return troupe::replay::run({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "replay_audit: %s\n", problem.what());
    return 2;
  }
}
