// libFuzzer target of the readers of data sets. The first byte selects the format. HDF5 and NetCDF
// are not fuzzed, because their libraries guarantee nothing for damaged files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <zlib.h>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/tar_writer.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "learner/data/pictures/picture.hpp"
#include "tests/fuzz_seeds.hpp"
#include "tests/temporary_folder.hpp"

namespace {

namespace data = troupe::learner::data;

const std::filesystem::path& folder() {
  static const troupe::TemporaryFolder folder;
  return folder.path();
}

void write(const std::filesystem::path& path, const std::uint8_t* bytes, std::size_t size) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
}

void read_all(const data::DatasetOptions& options) {
  const auto dataset = data::open_dataset(options);
  const auto rows = std::min<std::int64_t>(dataset->size(), 64);
  const auto batch = dataset->rows(at::arange(rows, at::kLong), 0);
  for (const auto& [name, tensor] : batch)
    if (tensor.size(0) != rows)
      __builtin_trap();
  const auto label = batch.find("label");
  if (const auto classes = dataset->info().classes;
      classes > 0 && label != batch.end()
      && (label->second.min().item<std::int64_t>() < 0
          || label->second.max().item<std::int64_t>() >= classes))
    __builtin_trap();
}

void decode(const std::uint8_t* bytes, std::size_t size) {
  data::PictureDecoder decoder;
  data::Picture picture;
  const std::span input(reinterpret_cast<const std::byte*>(bytes), size);
  const auto found = decoder.size(input, "picture");
  if (std::int64_t{found.height} * found.width > 1 << 20)
    return; // to keep the fuzzer fast
  decoder.decode(input, "picture", 1 << (size % 4), picture);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A tar archive of a picture and two labels, which are in files of this kind.
std::string tar_with(const std::filesystem::path& file, const std::string& picture,
                     const std::string& kind, const std::string& first, const std::string& second) {
  data::TarWriter tar(file);
  const auto add = [&](const std::string& name, const std::string& text) {
    tar.add(name, std::as_bytes(std::span(text)));
  };
  add("1.jpg", picture);
  add("1." + kind, first);
  add("2." + kind, second);
  tar.finish();
  std::string text = troupe::read_text(file);
  text.resize(text.find_last_not_of('\0') + 1); // without the end, which is 8 KB of zeros
  text.resize((text.size() + 511) / 512 * 512);
  return text;
}

std::string compressed(const std::filesystem::path& file, const std::string& text) {
  const gzFile out = gzopen(file.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  return troupe::read_text(file);
}

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const TemporaryFolder files(kMemoryFolder);
  const std::string jpeg = text_of(
      data::encode_jpeg({.height = 8, .width = 8, .rgb = std::vector<std::uint8_t>(192, 99)}, 90));
  const std::string pixels(3072, '\7');
  std::string npy = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  npy.resize(117, ' ');
  npy = std::string("\x93NUMPY\x01\0v\0", 10) + npy + '\n' + std::string(8, '\0');
  const auto idx = std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02", 16) + "12345678";
  return {std::string(1, '\0') + jpeg,
          '\x01' + tar_with(files / "cls.tar", jpeg, "cls", "1", "0\n"),
          '\x01'
              + tar_with(files / "json.tar", jpeg, "json", R"({"label": 1, "caption": "a cat"})",
                         R"([{"label": 2}])"),
          '\x02' + std::string(1, '\5') + pixels,
          '\x03' + idx,
          '\x04' + std::string("length,width,label\n1.5,2,0\n-1e3,4,1\n"),
          '\x05' + npy,
          '\x06' + compressed(files / "idx.gz", idx)};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 1)
    return 0;
  const auto kind = bytes[0] % 7;
  ++bytes;
  --size;
  const char* names[] = {"",      "a.tar", "data_batch_1.bin",          "train-images-idx3-ubyte",
                         "a.csv", "a.npy", "train-images-idx3-ubyte.gz"};
  try {
    if (kind == 0) {
      decode(bytes, size);
      return 0;
    }
    write(folder() / names[kind], bytes, size);
    const std::uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
    if (kind == 3 || kind == 6)
      write(folder() / "train-labels-idx1-ubyte", labels, sizeof labels);
    read_all({.path = folder() / names[kind],
              .transform = {.crop = kind == 1 ? data::Crop::centre : data::Crop::none,
                            .size = kind == 1 ? 8 : 0},
              .tolerate = 0.5});
    return 0;
  } catch (const data::DataError&) {
  } catch (const std::invalid_argument&) {
  }
  return troupe::fuzz_result(false);
}
