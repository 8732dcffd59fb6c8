#include "env/wire/shared_heap.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "env/processes/forked.hpp"
#include "env/wire/shared_mapping.hpp"

namespace troupe::env::wire {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

std::shared_ptr<SharedMapping> mapping_of(const SharedHeap& heap) {
  auto mapping = SharedMapping::open(heap.frames(), heap.ledger(), heap.size(), heap.size());
  REQUIRE(mapping);
  return mapping;
}

std::shared_ptr<SharedBlock> filled(SharedHeap& heap, std::size_t size, int value) {
  auto block = heap.allocate(size);
  if (block)
    std::memset(block->bytes().data(), value, size);
  return block;
}

TEST_CASE(
    "Data written to a heap is read through its mapping and freed by the receiver's release") {
  const auto heap = SharedHeap::make(kBytes);
  REQUIRE(heap);
  const auto mapping = mapping_of(*heap);
  auto block = filled(*heap, 1000, 7);
  REQUIRE(block);
  const Reference reference = heap->send(*block, 1);
  block.reset();
  auto received = mapping->hold(reference);
  mapping->seen(1);
  REQUIRE(received);
  CHECK_EQ(received->bytes().size(), 1000);
  CHECK(received->bytes()[999] == std::byte{7});
  CHECK_EQ(heap->in_use(), 1024);
  received.reset();
  CHECK_EQ(heap->in_use(), 0);
}

TEST_CASE("A block that is not sent is freed when it is destroyed") {
  const auto heap = SharedHeap::make(kBytes);
  auto block = heap->allocate(kBytes);
  REQUIRE(block);
  CHECK_FALSE(heap->allocate(1));
  block.reset();
  CHECK(heap->allocate(kBytes));
}

TEST_CASE("A forked process that destroys its copy of a frame leaves the frame to its parent") {
  const auto heap = SharedHeap::make(kBytes);
  auto mapping = mapping_of(*heap);
  auto received = mapping->hold(heap->send(*filled(*heap, 1000, 7), 1));
  mapping->seen(1);
  const int status = status_of_child([&] {
    received.reset();
    mapping.reset();
    return 0;
  });
  CHECK_EQ(status, 0);
  CHECK_EQ(heap->in_use(), 1024);
  CHECK(received->bytes()[999] == std::byte{7});
}

TEST_CASE("The memory of a lost message is freed once a later message has arrived") {
  const auto heap = SharedHeap::make(kBytes);
  const auto mapping = mapping_of(*heap);
  heap->send(*heap->allocate(kBytes / 2), 1);
  const Reference second = heap->send(*heap->allocate(kBytes / 4), 2);
  CHECK_EQ(heap->in_use(), kBytes * 3 / 4);
  const auto held = mapping->hold(second);
  mapping->seen(2);
  CHECK_EQ(heap->in_use(), kBytes / 4);
}

TEST_CASE("Frames in use never overlap, whatever the order of their releases") {
  std::mt19937 random(7);
  const auto heap = SharedHeap::make(kBytes);
  const auto mapping = mapping_of(*heap);
  struct Live {
    std::shared_ptr<SharedBlock> block; // held by the sender or by the receiver
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  std::vector<Live> live;
  std::uint64_t sequence = 0;
  int refused = 0;
  for (int i = 0; i < 30000; ++i) {
    if (!live.empty() && random() % 100 < 48) {
      const std::size_t at = random() % live.size();
      live[at] = std::move(live.back());
      live.pop_back();
      continue;
    }
    const std::size_t size = 1 + random() % 40000;
    auto block = heap->allocate(size);
    if (!block) {
      ++refused;
      continue;
    }
    const auto reference = heap->send(*block, ++sequence);
    const std::size_t offset = reference.offset * kOffsetUnit;
    for (const Live& other : live)
      REQUIRE((offset + size <= other.offset || other.offset + other.size <= offset));
    REQUIRE_LE(offset + size, kBytes);
    live.push_back({mapping->hold(reference), offset, size});
    mapping->seen(sequence);
  }
  CHECK_GT(refused, 0);
  live.clear();
  CHECK_EQ(heap->in_use(), 0);
  CHECK(heap->allocate(kBytes)); // all free space is one piece again
}

TEST_CASE("A heap has a bounded number of frames") {
  const auto heap = SharedHeap::make(std::size_t{4} << 20);
  std::vector<std::shared_ptr<SharedBlock>> blocks;
  while (auto block = heap->allocate(64))
    blocks.push_back(std::move(block));
  CHECK_EQ(blocks.size(), kSlots);
}

TEST_CASE("Frames stay within the memory whatever a receiver writes to the ledger") {
  std::mt19937 random(3);
  const auto heap = SharedHeap::make(kBytes);
  const Mapped ledger(heap->ledger().number(), sizeof(Ledger), PROT_READ | PROT_WRITE);
  REQUIRE(ledger);
  auto* words = reinterpret_cast<Ledger*>(ledger.bytes());
  std::uint64_t sequence = 0;
  for (int i = 0; i < 20000; ++i) {
    if (auto block = filled(*heap, 1 + random() % 60000, 1)) {
      const Reference reference = heap->send(*block, ++sequence);
      REQUIRE_LE(reference.offset * kOffsetUnit + reference.size, kBytes);
    }
    words->seen = random() % 3 == 0 ? ~std::uint64_t{0} : random();
    words->slots[random() % kSlots] = released(random() % 64);
  }
  words->seen = ~std::uint64_t{0};
  for (auto& slot : words->slots)
    slot = 0;
  CHECK_EQ(heap->in_use(), 0);
}

TEST_CASE("Other processes cannot write to frames, and no process can resize the memory") {
  const auto heap = SharedHeap::make(kBytes);
  CHECK_FALSE(Mapped(heap->frames().number(), kBytes, PROT_READ | PROT_WRITE));
  CHECK(Mapped(heap->frames().number(), kBytes, PROT_READ));
  for (const Descriptor* file : {&heap->frames(), &heap->ledger()}) {
    CHECK_NE(::ftruncate(file->number(), 0), 0);
    CHECK_NE(::ftruncate(file->number(), 1 << 24), 0);
    CHECK_NE(::fcntl(file->number(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
}

} // namespace
} // namespace troupe::env::wire
