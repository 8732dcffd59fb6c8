#include "tests/doctest_torch.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>

#include <ATen/CPUGeneratorImpl.h>

#include "learner/device/safetensors.hpp"
#include "learner/nn/kernels/random_shift.hpp"
#include "tests/folders.hpp"
#include "tests/full_disk.hpp"
#include "tests/learner/agents/d4pg/d4pg_fixture.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

namespace fs = std::filesystem;
using namespace troupe::learner;
using namespace troupe::tests;

namespace {

TensorMap every_kind() {
  return {{"a.weight", uniform({3, 4}, 1)},
          {"b", uniform({5}, 2).to(at::kDouble)},
          {"c", uniform({2, 1, 3}, 3).to(at::kBFloat16)},
          {"counter", at::full({1}, std::int64_t{-7}, at::kLong)},
          {"empty", at::empty({0, 3})},
          {"image", uniform({2, 2}, 4, 0, 255).to(at::kByte)},
          {"scalar", at::full({}, 2.5f)},
          {"transposed", uniform({3, 4}, 5).t()}};
}

std::string with_header(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string refusal(const fs::path& path) {
  return troupe::error_of<std::runtime_error>([&] { read_safetensors(path); });
}

} // namespace

TEST_CASE("Tensors of every type, shape and stride survive a round trip with their metadata") {
  const troupe::TemporaryFolder folder;
  const fs::path path = folder / "all.safetensors";
  write_safetensors(path, every_kind(), {{"step", "12"}, {"quote", "\"\n"}});
  const Safetensors back = read_safetensors(path);
  CHECK(equal(back.tensors, every_kind()));
  for (const auto& [name, tensor] : every_kind())
    CHECK((back.tensors.at(name).scalar_type() == tensor.scalar_type()));
  CHECK(back.metadata.at("step") == "12");
  CHECK(back.metadata.at("quote") == "\"\n");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1); // no partial file is left
}

TEST_CASE("A full disk or an unsupported tensor leaves the old file unchanged") {
  const troupe::TemporaryFolder folder;
  const fs::path path = folder / "model.safetensors";
  write_safetensors(path, every_kind());
  const std::string before = troupe::read_text(path);
  const auto error = troupe::error_of<std::runtime_error>([&] {
    const troupe::FullDisk full(4096);
    write_safetensors(path, {{"large", at::zeros({100000})}});
  });
  CHECK(error.find("model.safetensors") != std::string::npos);
  CHECK(troupe::read_text(path) == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(write_safetensors(folder / "none" / "x", every_kind()), std::runtime_error);
  CHECK_THROWS_AS(write_safetensors(path, {{"bad", at::zeros({2}, at::kHalf)}}),
                  std::invalid_argument);
  CHECK(troupe::read_text(path) == before);
}

TEST_CASE("Foreign and damaged files are refused by name and rule") {
  const troupe::TemporaryFolder folder;
  const fs::path path = folder / "bad.safetensors";
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets
           + "}}";
  };
  const std::string eight(8, 'x');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "bytes"},
      {"1234567", "bytes"},
      {std::string(8, '\xff'), "header"},
      {with_header("not json"), "JSON"},
      {with_header("[1, 2]"), "JSON"},
      {with_header(std::string(10000, '[')), "JSON"},
      {with_header("{\"t\": 1}"), "dtype"},
      {with_header(tensor("F16", "[4]", "[0, 8]"), eight), "F16"},
      {with_header(tensor("F32", "[2]", "[0, 9]"), eight), "data_offsets"},
      {with_header(tensor("F32", "[2]", "[8, 0]"), eight), "data_offsets"},
      {with_header(tensor("F32", "[3]", "[0, 8]"), eight), "shape"},
      {with_header(tensor("F32", "[-2]", "[0, 8]"), eight), "shape"},
      {with_header(tensor("F32", "[4611686018427387904, 4]", "[0, 0]"), eight), "shape"},
      {with_header(tensor("F32", "[0, 18446744073709551615, 9223372036854775807]", "[0, 0]")),
       "shape"},
      {with_header(tensor("F32", "[1]", "[4, 8]"), eight), "gap"},
      {with_header(tensor("F32", "[1]", "[0, 4]"), eight), "after the last"},
      {with_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                   eight),
       "overlaps"},
      {with_header("{\"__metadata__\":{\"x\":1}}"), "__metadata__"}};
  for (const auto& [bytes, rule] : cases) {
    CAPTURE(bytes.substr(0, 120));
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string error = refusal(path);
    CHECK(error.find("bad.safetensors") != std::string::npos);
    CHECK(error.find(rule) != std::string::npos);
  }
  CHECK(refusal(folder / "absent").find("absent") != std::string::npos);
  CHECK_FALSE(refusal(folder.path()).empty()); // a folder
}

TEST_CASE("Damaged copies of a file are either read to the last byte or refused by name") {
  const troupe::TemporaryFolder folder;
  const fs::path path = folder / "fuzz.safetensors";
  write_safetensors(path, every_kind(), {{"step", "12"}});
  const std::string whole = troupe::read_text(path);
  Random random(11);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    const std::uint32_t kind = random.below(4);
    const std::uint32_t changes = 1 + random.below(4);
    for (std::uint32_t k = 0; k < changes && !bytes.empty(); ++k) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(bytes.size()));
      if (kind == 0)
        bytes[at] = static_cast<char>(random.below(256));
      else if (kind == 1)
        bytes.resize(at);
      else if (kind == 2)
        bytes.insert(at, 1 + random.below(9), "0123456789[]{},:\"-"[random.below(18)]);
      else
        bytes.erase(at, 1 + random.below(9));
    }
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      const Safetensors back = read_safetensors(path);
      std::uint64_t size = 0; // of the header, after the 8 bytes of this number
      std::memcpy(&size, bytes.data(), 8);
      for (const auto& [name, tensor] : back.tensors)
        size += tensor.nbytes();
      CHECK(size + 8 == bytes.size());
    } catch (const std::runtime_error& error) {
      ++refused;
      if (std::string(error.what()).find("fuzz.safetensors") == std::string::npos)
        FAIL(error.what()); // the file's name is missing
    }
  }
  CHECK(refused > 1500);
}

TEST_CASE("Files are exchanged with the official Python package in both directions") {
  const troupe::TemporaryFolder folder;
  const fs::path ours = folder / "ours.safetensors";
  const fs::path theirs = folder / "theirs.safetensors";
  at::Tensor values = at::arange(12, at::kFloat).view({3, 4}) / 8;
  write_safetensors(ours,
                    {{"f32", values},
                     {"f64", values.to(at::kDouble)},
                     {"i64", at::arange(5, at::kLong)},
                     {"transposed", values.t()},
                     {"u8", at::arange(256, at::kInt).to(at::kByte)}},
                    {{"made_by", "troupe"}});
  const std::string command = std::string("sh ") + troupe::in_source()
                              + "/tests/learner/device/safetensors_python.sh " + troupe::in_build()
                              + " " + ours.string() + " " + theirs.string();
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    MESSAGE("skipped: no Python package 'safetensors' here, and pip cannot fetch it");
    return;
  }
  REQUIRE(status == 0);
  const Safetensors back = read_safetensors(theirs);
  CHECK(at::equal(back.tensors.at("f32"), values * 2));
  CHECK(at::equal(back.tensors.at("i64"), at::arange(5, at::kLong) - 2));
  CHECK(at::equal(back.tensors.at("u8"), at::full({2, 2}, 9, at::kByte)));
  CHECK(back.metadata.at("made_by") == std::string("python"));
}
