// libFuzzer target of the header of a table's checkpoint. The first byte selects a saved table,
// whose chunks stay as they are, and whether the header follows as it is or as its blocks, each
// behind its length in two bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "replay/chunks/window_reader.hpp"
#include "replay/storage/blocks.hpp"
#include "replay/storage/checkpoint_names.hpp"
#include "replay/table/table.hpp"
#include "replay/table/table_checkpoint.hpp"
#include "replay/writers/writer.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

namespace {

using namespace troupe::replay;
using Blocks = std::vector<std::span<const std::byte>>;

const Signature& steps() {
  static const Signature made{.columns = {{"x", troupe::env::ElementType::float32, {4}}},
                              .items = "windows"};
  return made;
}

/// A table of 15 items that has been saved, and an insertion that follows.
class Saved {
public:
  explicit Saved(const TableConfig& of) : config(of) {
    Writer writer(steps(), 5, {.chunk_rows = 8, .reach = 6});
    Table table(of, steps(), 99);
    table.insert(*written(writer, 20));
    more = written(writer, 4);
    std::vector<Item> items;
    table.sample(7, items);
    const TableSnapshot snapshot = table.snapshot();
    header = snapshot.header;
    write_checkpoint(snapshot, folder / "table");
    manifest = CheckpointReader(folder / "table").manifest();
  }

  TableConfig config;
  InsertionPtr more;
  std::vector<std::vector<std::byte>> header;
  CheckpointManifest manifest;
  troupe::TemporaryFolder folder{troupe::kMemoryFolder};

private:
  /// An item for each row that has five before it, every third with a shape.
  static InsertionPtr written(Writer& writer, int rows) {
    auto shape = std::make_shared<ItemShape>();
    shape->columns.resize(1);
    shape->columns[0].push_back({.first = 0, .count = 2});
    for (int i = 0; i < rows; ++i) {
      std::ranges::fill(writer.next(0), static_cast<std::byte>(i));
      writer.append();
      if (writer.rows() > 5)
        writer.add_item(writer.rows() - 4, 4, 1, i % 3 == 0 ? shape : nullptr, 1 + i % 4);
    }
    return writer.take();
  }
};

/// Two tables: a ring, and one whose header has all kinds of blocks.
const Saved& saved(std::size_t kind) {
  static const Saved ring(TableConfig{.max_items = 16});
  static const Saved other(TableConfig{.max_items = 16,
                                       .sampler = {.kind = SelectorKind::prioritized},
                                       .remover = {.kind = SelectorKind::uniform}});
  return kind == 0 ? ring : other;
}

Blocks split(std::span<const std::byte> input) {
  Blocks blocks;
  while (input.size() >= 2) {
    const std::size_t bytes = std::min(std::to_integer<std::size_t>(input[0])
                                           + 256 * std::to_integer<std::size_t>(input[1]),
                                       input.size() - 2);
    blocks.push_back(input.subspan(2, bytes));
    input = input.subspan(2 + bytes);
  }
  return blocks;
}

std::vector<std::byte> header_of(const Blocks& blocks) {
  BlockWriter header;
  header.raw(kTableMagic, sizeof kTableMagic);
  header.raw(&kTableVersion, sizeof kTableVersion);
  for (const auto block : blocks)
    header.block(block);
  return header.bytes();
}

void write_manifest(const Saved& to, std::vector<std::byte> header) {
  CheckpointManifest manifest = to.manifest;
  manifest.header = std::move(header);
  const auto bytes = encode(manifest);
  std::ofstream(to.folder / "table" / kManifestName, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// A loaded table must give the same file when it is saved and loaded again.
void expect_again(const Table& table, const Saved& from) {
  const auto folder = from.folder / "again";
  std::filesystem::remove_all(folder);
  const TableSnapshot snapshot = table.snapshot();
  write_checkpoint(snapshot, folder);
  Table again(from.config, steps(), 2);
  again.load(folder);
  if (again.snapshot().header != snapshot.header)
    __builtin_trap();
}

/// Samples and reads some rows of each item.
void use(Table& table) {
  constexpr std::uint32_t kMostRead = 100;
  std::vector<Item> items;
  table.sample(4, items);
  WindowReader reader;
  for (const Item& item : items) {
    reader.open(item);
    for (std::uint32_t row = 0; row < std::min(item.rows, kMostRead); ++row) {
      volatile const std::byte first = *reader.row(row);
      (void)first;
    }
  }
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  std::vector<std::string> seeds;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const auto header = header_of(Blocks(saved(kind).header.begin(), saved(kind).header.end()));
    seeds.push_back(static_cast<char>(kind + 2)
                    + std::string(reinterpret_cast<const char*>(header.data()), header.size()));
    std::string& seed = seeds.emplace_back(1, static_cast<char>(kind));
    for (const auto& block : saved(kind).header) {
      seed += static_cast<char>(block.size() % 256);
      seed += static_cast<char>(block.size() / 256);
      seed.append(reinterpret_cast<const char*>(block.data()), block.size());
    }
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const Saved& from = saved(data[0] % 2);
  const auto bytes = std::as_bytes(std::span(data, size).subspan(1));
  std::vector<std::byte> header =
      data[0] % 4 < 2 ? header_of(split(bytes)) : std::vector(bytes.begin(), bytes.end());
  write_manifest(from, std::move(header));
  Table table(from.config, steps(), 1);
  try {
    table.load(from.folder / "table", Table::ConfigChange::accept);
  } catch (const std::runtime_error&) {
    return troupe::fuzz_result(false);
  }
  expect_again(table, from);
  use(table);
  table.insert(*from.more);
  use(table);
  return troupe::fuzz_result(true);
}
