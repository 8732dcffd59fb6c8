#include <doctest/doctest.h>
#include <stdexcept>

#include <zlib.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <new>
#include <numeric>

#include "env/npz.hpp"
#include "env/processes/forked.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/text.hpp"

using namespace troupe::env;

namespace {

using Buffer = std::vector<std::byte>;

void put(Buffer& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put(Buffer& out, const std::string& text) {
  for (const char c : text)
    out.push_back(static_cast<std::byte>(c));
}

Buffer npy(const std::string& descr, const std::string& shape, const Buffer& data) {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  Buffer out;
  put(out, std::string("\x93NUMPY\x01", 7));
  put(out, std::string(1, '\0'));
  put(out, header.size(), 2);
  put(out, header);
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

Buffer deflated(const Buffer& bytes) {
  Buffer out(bytes.size() + 100);
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// Writes zip files according to the specification (PKWARE APPNOTE), independently of our reader.
class Zip {
public:
  void add(const std::string& name, const Buffer& bytes, bool packed,
           std::uint64_t claimed_size = ~std::uint64_t{0}) {
    const Buffer data = packed ? deflated(bytes) : bytes;
    const std::uint64_t size = claimed_size != ~std::uint64_t{0} ? claimed_size : bytes.size();
    const auto checksum =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    put_entry(name, packed, checksum, data.size(), size, file_.size());
    put(file_, 0x04034b50, 4);
    put_common(file_, packed, checksum, data.size(), size, name.size(), 0);
    put(file_, name);
    file_.insert(file_.end(), data.begin(), data.end());
  }

  /// Adds one entry per name, all with the same data: each local header declares the headers after
  /// it as its extra field, so that the data follow every header.
  void add_shared(const std::vector<std::string>& names, const Buffer& bytes) {
    const Buffer data = deflated(bytes);
    const auto checksum =
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    std::size_t later = 0; // bytes of the headers after this one
    std::vector<std::size_t> before_data;
    Buffer headers;
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      const std::size_t extra = later == 0 ? 0 : 4 + later;
      Buffer header;
      put(header, 0x04034b50, 4);
      put_common(header, true, checksum, data.size(), bytes.size(), name->size(), extra);
      put(header, *name);
      if (extra > 0) {
        put(header, 0x9999, 2); // an unknown type of extra field
        put(header, later, 2);
      }
      later += header.size();
      headers.insert(headers.begin(), header.begin(), header.end());
      before_data.push_back(later);
    }
    const std::size_t at = file_.size() + headers.size(); // of the compressed data
    for (std::size_t i = 0; i < names.size(); ++i)
      put_entry(names[names.size() - 1 - i], true, checksum, data.size(), bytes.size(),
                at - before_data[i]);
    file_.insert(file_.end(), headers.begin(), headers.end());
    file_.insert(file_.end(), data.begin(), data.end());
  }

  Buffer finish(const std::string& comment = "") const {
    Buffer out = file_;
    out.insert(out.end(), directory_.begin(), directory_.end());
    put(out, 0x06054b50, 4);
    put(out, 0, 4);
    put(out, count_, 2);
    put(out, count_, 2);
    put(out, directory_.size(), 4);
    put(out, file_.size(), 4);
    put(out, comment.size(), 2);
    put(out, comment);
    return out;
  }

private:
  /// The fields from "version needed" to the length of the extra field.
  static void put_common(Buffer& out, bool packed, std::uint64_t checksum, std::uint64_t stored,
                         std::uint64_t size, std::size_t name, std::size_t extra) {
    put(out, 20, 2);
    put(out, 0, 2);
    put(out, packed ? 8 : 0, 2);
    put(out, 0, 4);
    put(out, checksum, 4);
    put(out, stored, 4);
    put(out, size, 4);
    put(out, name, 2);
    put(out, extra, 2);
  }

  void put_entry(const std::string& name, bool packed, std::uint64_t checksum, std::uint64_t stored,
                 std::uint64_t size, std::size_t offset) {
    put(directory_, 0x02014b50, 4);
    put(directory_, 20, 2);
    put_common(directory_, packed, checksum, stored, size, name.size(), 0);
    directory_.insert(directory_.end(), 10, std::byte{0});
    put(directory_, offset, 4);
    put(directory_, name);
    ++count_;
  }

  Buffer file_;
  Buffer directory_;
  std::uint64_t count_ = 0;
};

Buffer bytes_of(const std::vector<double>& values) {
  Buffer out(values.size() * sizeof(double));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

Buffer sample() {
  std::vector<double> ramp(40);
  std::iota(ramp.begin(), ramp.end(), -3.5);
  Zip zip;
  zip.add("ramp.npy", npy("<f8", "(8, 5)", bytes_of(ramp)), true);
  zip.add("model/one.npy", npy("<f8", "()", bytes_of({2.25})), false);
  zip.add("none.npy", npy("<f8", "(50, 0)", {}), true);
  zip.add("bytes.npy", npy("|u1", "(3,)", {std::byte{1}, std::byte{2}, std::byte{255}}), true);
  return zip.finish("a comment");
}

constexpr std::size_t kSharedBytes = std::size_t{4} << 20; // compresses to some 4 KiB

/// An archive whose entries all have the same bytes of the file.
Buffer sharing_entries(int entries) {
  std::vector<std::string> names;
  for (int i = 0; i < entries; ++i)
    names.push_back("a" + std::to_string(100 + i) + ".npy");
  Zip zip;
  zip.add_shared(names,
                 npy("|u1", "(" + std::to_string(kSharedBytes) + ",)", Buffer(kSharedBytes)));
  return zip.finish();
}

std::string refusal(const Buffer& file) {
  std::string why = troupe::error_of<std::runtime_error>([&] { parse_npz(file, "test.npz"); });
  CHECK((why.empty() || why.starts_with("test.npz")));
  return why;
}

} // namespace

TEST_CASE("Stored and deflated arrays of an archive are read") {
  const auto arrays = parse_npz(sample(), "sample");
  REQUIRE(arrays.size() == 4);
  const NpyArray& ramp = arrays.at("ramp");
  CHECK(ramp.shape == std::vector<std::int64_t>{8, 5});
  const std::vector<double> values = ramp.as_doubles();
  REQUIRE(values.size() == 40);
  for (std::size_t i = 0; i < 40; ++i)
    CHECK(values[i] == -3.5 + static_cast<double>(i));
  CHECK(arrays.at("model/one").shape.empty());
  CHECK(arrays.at("model/one").as_doubles() == std::vector<double>{2.25});
  CHECK(arrays.at("none").as_doubles().empty());
  CHECK(arrays.at("bytes").as_doubles() == std::vector<double>{1, 2, 255});
}

TEST_CASE("An archive that is cut at any byte is refused") {
  const Buffer whole = sample();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(refusal(Buffer(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))) != "");
  }
}

TEST_CASE("Flipped bits never crash the reader and never change a number silently") {
  const Buffer whole = sample();
  const auto truth = parse_npz(whole, "sample");
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Buffer mutated = whole;
    mutated[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    try {
      for (const auto& [name, array] : parse_npz(mutated, "mutated")) {
        const auto original = truth.find(name);
        if (original != truth.end()) // checksums cover contents, but not names
          CHECK(array.as_doubles() == original->second.as_doubles());
      }
    } catch (const std::runtime_error&) {
    }
  }
}

TEST_CASE("Hostile archives are refused") {
  const Buffer small = npy("<f8", "(1,)", bytes_of({1}));
  const auto archive = [](const std::string& name, const Buffer& bytes, bool packed,
                          std::uint64_t claimed = ~std::uint64_t{0}) {
    Zip zip;
    zip.add(name, bytes, packed, claimed);
    return zip.finish();
  };
  CHECK(refusal(archive("a.npy", small, true, 0xfffffff0)).find("too large") != std::string::npos);
  CHECK(refusal(archive("a.npy", small, true, 100 << 20)) != "");
  CHECK(refusal(archive("a.npy", small, true, small.size() + 1)) != "");
  CHECK(refusal(archive("a.npy", small, false, 5)) != "");
  CHECK(refusal(archive("a.txt", small, true)).find("not an array") != std::string::npos);
  for (const char* shape :
       {"(99999999999, 99999999999)", "(4294967296, 4294967296)", "(-1,)", "(2,)", "(1.5,)", "1",
        "(1", "(0x1,)", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"})
    CHECK_MESSAGE(refusal(archive("a.npy", npy("<f8", shape, bytes_of({1})), true)) != "", shape);
  for (const char* type : {">f8", "|O", "<U4", "<c16", ""})
    CHECK_MESSAGE(refusal(archive("a.npy", npy(type, "(1,)", bytes_of({1})), true)) != "", type);
  Zip twice;
  twice.add("a.npy", small, true);
  twice.add("a.npy", small, true);
  CHECK(refusal(twice.finish()).find("twice") != std::string::npos);
  NpzLimits tight;
  tight.array_bytes = 64;
  CHECK_THROWS_AS(parse_npz(sample(), "sample", tight), std::runtime_error);
  tight = {};
  tight.file_bytes = 64;
  CHECK_THROWS_AS(parse_npz(sample(), "sample", tight), std::runtime_error);
  tight = {};
  tight.arrays = 3;
  CHECK_THROWS_AS(parse_npz(sample(), "sample", tight), std::runtime_error);
}

TEST_CASE("A hostile archive is refused before memory of the size that it claims is allocated") {
  if (!troupe::counts_allocations())
    return;
  const auto largest = [](const Buffer& array, std::uint64_t claimed) {
    Zip zip;
    zip.add("a.npy", array, true, claimed);
    const Buffer file = zip.finish();
    std::string why;
    const std::size_t bytes = troupe::largest_allocation_of([&] { why = refusal(file); });
    CHECK(why != "");
    return bytes;
  };
  const Buffer small = npy("<f8", "(1,)", bytes_of({1}));
  const Buffer claims = npy("<f8", "(12500000,)", bytes_of({1}));
  constexpr std::size_t kMost = std::size_t{4} << 20; // libarchive's own buffers take less
  CHECK(largest(small, 0xfffffff0) < kMost);          // beyond the limit
  CHECK(largest(small, 100 << 20) < kMost);           // beyond what the file can unpack to
  CHECK(largest(claims, claims.size()) < kMost);
  Zip zip;
  zip.add("a.npy", npy("|u1", "(" + std::to_string(kMost) + ",)", Buffer(kMost)), true);
  const Buffer honest = zip.finish(); // shows that allocations are measured
  CHECK(troupe::largest_allocation_of([&] { parse_npz(honest, "honest"); }) >= kMost);
}

TEST_CASE(
    "Entries that share their data unpack to no more than the limit for the size of the file") {
  REQUIRE(parse_npz(sharing_entries(1), "one").at("a100").bytes.size() == kSharedBytes);
  const Buffer file = sharing_entries(100); // unpacks to 400 MiB, less than NpzLimits
  const std::string why = refusal(file);
  REQUIRE(why.find("is too large; at most ") != std::string::npos);
  CHECK(std::stoul(why.substr(why.find("at most ") + 8)) < 1100 * file.size());
}

TEST_CASE("An archive that would unpack to 400 MiB is refused with 64 MiB of address space") {
  if (!troupe::counts_allocations()) // a sanitizer reserves address space
    return;
  const Buffer file = sharing_entries(100);
  const int status = troupe::status_of_child([&] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const ::rlim_t most = static_cast<::rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (64U << 20U);
    const ::rlimit limit{.rlim_cur = most, .rlim_max = most};
    int code = ::setrlimit(RLIMIT_AS, &limit) == 0 ? 1 : 2;
    try {
      parse_npz(file, "test.npz");
    } catch (const std::runtime_error&) {
      code = code == 1 ? 0 : code;
    } catch (const std::bad_alloc&) {
      code = 3;
    }
    return code;
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("The error about a missing archive names the file") {
  CHECK_THROWS_WITH_AS(read_npz("/nowhere/a.npz"), doctest::Contains("/nowhere/a.npz"),
                       std::runtime_error);
  CHECK_THROWS_AS(read_npz("/"), std::runtime_error);
}
