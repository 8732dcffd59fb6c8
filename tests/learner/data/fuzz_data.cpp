// libFuzzer target of the readers of data sets. The first byte selects the format. HDF5 and NetCDF
// are not fuzzed, because their libraries guarantee nothing for damaged files.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <ATen/ops/arange.h>

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
  dataset->rows(at::arange(rows, at::kLong), 0);
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

} // namespace

std::vector<std::string> troupe::fuzz_seeds() {
  const TemporaryFolder files(kMemoryFolder);
  const auto jpeg =
      data::encode_jpeg({.height = 8, .width = 8, .rgb = std::vector<std::uint8_t>(192, 99)}, 90);
  const std::byte label{'1'};
  data::TarWriter tar(files / "seed.tar");
  tar.add("1.jpg", jpeg);
  tar.add("1.cls", {&label, 1});
  tar.finish();
  const std::string pixels(3072, '\7');
  std::string npy = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }";
  npy.resize(117, ' ');
  npy = std::string("\x93NUMPY\x01\0v\0", 10) + npy + '\n' + std::string(8, '\0');
  return {std::string(1, '\0')
              + std::string(reinterpret_cast<const char*>(jpeg.data()), jpeg.size()),
          '\x01' + read_text(files / "seed.tar"),
          '\x02' + std::string(1, '\5') + pixels,
          '\x03' + std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x02", 16) + "12345678",
          '\x04' + std::string("length,width,label\n1.5,2,0\n-1e3,4,1\n"),
          '\x05' + npy};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size < 1)
    return 0;
  const auto kind = bytes[0] % 6;
  ++bytes;
  --size;
  const char* names[] = {"",      "a.tar", "data_batch_1.bin", "train-images-idx3-ubyte",
                         "a.csv", "a.npy"};
  try {
    if (kind == 0) {
      decode(bytes, size);
      return 0;
    }
    write(folder() / names[kind], bytes, size);
    const std::uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 0};
    if (kind == 3)
      write(folder() / "train-labels-idx1-ubyte", labels, sizeof labels);
    read_all({.path = folder() / names[kind],
              .transform = {.crop = kind == 1 ? data::Crop::centre : data::Crop::none,
                            .size = kind == 1 ? 8 : 0},
              .tolerate = 0.5});
  } catch (const data::DataError&) {
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
