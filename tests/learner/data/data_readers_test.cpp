#include <doctest/doctest.h>

#include <time.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/formats/tar_index.hpp"
#include "learner/data/formats/tar_writer.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "learner/data/pictures/file.hpp"
#include "tests/folders.hpp"
#include "tests/learner/data/data_fixture.hpp"

namespace {

/// A simulated disk. The linker replaces pread and nanosleep with the functions below.
struct Disk {
  std::atomic<int> failing_reads = 0;
  std::atomic<int> reason = 0;                                // errno of a failing read
  std::atomic<std::size_t> most_bytes = std::size_t{1} << 30; // per read
  std::atomic<std::int64_t> paused_ms = 0;                    // while a read fails; simulated
};

Disk& disk() {
  static Disk only;
  return only;
}

/// Repairs the disk at the end of a test, even of one that failed.
struct RepairedDisk {
  ~RepairedDisk() {
    disk().failing_reads = 0;
    disk().reason = 0;
    disk().most_bytes = std::size_t{1} << 30;
    disk().paused_ms = 0;
  }
};

} // namespace

extern "C" ssize_t __real_pread(int file, void* to, std::size_t size, off_t offset);
extern "C" int __real_nanosleep(const timespec* wanted, timespec* left);

extern "C" ssize_t __wrap_pread(int file, void* to, std::size_t size, off_t offset) {
  if (disk().failing_reads == 0)
    return __real_pread(file, to, std::min(size, disk().most_bytes.load()), offset);
  --disk().failing_reads;
  errno = disk().reason;
  return -1;
}

extern "C" int __wrap_nanosleep(const timespec* wanted, timespec* left) {
  if (disk().reason == 0)
    return __real_nanosleep(wanted, left);
  disk().paused_ms += wanted->tv_sec * 1000 + wanted->tv_nsec / 1'000'000;
  return 0;
}

namespace troupe::learner::data {
namespace {

std::filesystem::path image_folder(const TemporaryFolder& folder) {
  for (int i = 0; i < 6; ++i)
    write_bytes(folder / (i % 2 == 0 ? "cat" : "dog") / (std::to_string(i) + ".jpg"),
                encode_jpeg(numbered_picture(i, 16, 20), 95));
  return folder.path();
}

TEST_CASE("An image folder has one class per subfolder, and its pictures are in order") {
  const TemporaryFolder folder;
  const auto data = open_dataset({.path = image_folder(folder)});
  const auto info = data->info();
  CHECK(info.format == "folder");
  CHECK(info.rows == 6);
  CHECK(info.names == std::vector<std::string>{"cat", "dog"});
  CHECK(info.columns.at(0).shape == std::vector<std::int64_t>{3, 16, 20});
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  const auto batch = data->rows(at::tensor({4, 0}, at::kLong), 0);
  CHECK((batch.at("picture").scalar_type() == at::kByte));
  CHECK(batch.at("picture").is_contiguous(at::MemoryFormat::ChannelsLast));
  const auto close = [](int level, int wanted) { return std::abs(level - wanted) <= 6; };
  CHECK(close(batch.at("picture")[0][0][0][0].item<int>(), 3 * 20));
  CHECK(close(batch.at("picture")[1][2][5][7].item<int>(), 15 + 14 + 20));
}

TEST_CASE("An empty class folder, a corrupt JPEG and a picture of another size are named") {
  const TemporaryFolder folder;
  const auto path = image_folder(folder);
  std::filesystem::create_directory(path / "empty");
  refused({.path = path}, "empty: has no .jpg, .jpeg or .png");
  std::filesystem::remove(path / "empty");
  auto bytes = bytes_of(path / "cat" / "2.jpg");
  bytes.resize(bytes.size() - 30);
  write_bytes(path / "cat" / "2.jpg", bytes);
  refused({.path = path}, "cat/2.jpg (row 1): is a corrupt JPEG");
  write_bytes(path / "dog" / "1.jpg", encode_jpeg(numbered_picture(1, 30, 20), 95));
  refused({.path = path, .tolerate = 0.2},
          "has 20 x 30 pixels, the first picture 20 x 16 pixels; choose a crop");
}

TEST_CASE("Tolerated bad rows are counted, named and replaced by the next good ones") {
  const TemporaryFolder folder;
  const auto path = image_folder(folder);
  write_text(path / "cat" / "2.jpg", "no picture");
  write_text(path / "dog" / "5.jpg", "no picture");
  std::vector<std::string> told;
  const auto data = open_dataset(
      {.path = path, .tolerate = 0.4, .tell = [&](const auto& text) { told.push_back(text); }});
  const auto batch = all_rows(*data);
  CHECK(at::equal(batch.at("picture")[1], batch.at("picture")[2]));
  CHECK(at::equal(batch.at("picture")[5], batch.at("picture")[0])); // wraps around
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 0});
  CHECK(data->info().bad_rows == 2);
  REQUIRE(told.size() == 2);
  CHECK(told[0].find("cat/2.jpg") != std::string::npos);
  refused({.path = path, .tolerate = 0.2}, "2 of 6 rows are bad, and tolerate is 0.2");
  refused({.path = path, .tolerate = 2}, "tolerate: 2");
}

void write_shard(const std::filesystem::path& path, int first, int count) {
  TarWriter tar(path);
  for (int i = first; i < first + count; ++i) {
    const auto key = "train/" + std::string(120, 'x') + std::to_string(i); // a long name
    tar.add(key + ".cls", as_bytes(std::to_string(i % 3) + "\n"));
    tar.add(key + ".jpg", encode_jpeg(numbered_picture(i, 12, 12), 95));
    tar.add(key + ".txt", as_bytes("what nobody reads"));
  }
  tar.add("json.0.png", as_bytes("no extension of ours"));
  tar.finish();
}

TEST_CASE("Tar shards of different lengths form one data set with random access") {
  const TemporaryFolder folder;
  write_shard(folder / "s-009.tar", 0, 5);
  write_shard(folder / "s-010.tar", 5, 2);
  const auto check = [&](const std::filesystem::path& path) {
    const auto data = open_dataset({.path = path, .tolerate = 0.3});
    CHECK(data->size() == 9); // including the two without a picture
    const auto batch = data->rows(at::tensor({7, 3}, at::kLong), 0);
    CHECK(std::abs(batch.at("picture")[0][0][0][0].item<int>() - 120) <= 6);
    CHECK(batch.at("label")[0].item<int>() == 6 % 3);
    CHECK(batch.at("label")[1].item<int>() == 3 % 3);
    CHECK(data->info().classes == 3);
  };
  check(folder.path());
  check(folder / "s-{009..010}.tar");
  refused({.path = folder / "s-009.tar"}, "json (row 5): has no .jpg, .jpeg or .png");
  refused({.path = folder / "s-{009..011}.tar"}, "s-011.tar: cannot be read");
  refused({.path = folder / "s-{9..x}.tar"}, "must be two numbers");
}

TEST_CASE("A truncated tar and labels out of range are refused by name") {
  const TemporaryFolder folder;
  const auto path = folder / "a.tar";
  {
    TarWriter tar(path);
    tar.add("0.jpg", encode_jpeg(numbered_picture(0, 12, 12), 95));
    tar.add("0.json", as_bytes("{\"label\": 7}"));
    tar.add("1.jpg", encode_jpeg(numbered_picture(1, 12, 12), 95));
    tar.add("1.json", as_bytes("{\"label\": 1}"));
    tar.finish();
  }
  CHECK(labels_of(*open_dataset({.path = path})) == std::vector<std::int64_t>{7, 1});
  refused({.path = path, .classes = 5}, "a.tar: 0 (row 0): label 7 is out of range");
  const auto whole = bytes_of(path);
  for (const std::size_t size : {std::size_t{700}, std::size_t{1100}}) {
    write_bytes(path, {whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    refused({.path = path}, "a.tar: is not a readable tar archive, at byte");
  }
}

TEST_CASE("Labels of 2^24 and more are bad rows and add no classes") {
  const TemporaryFolder folder;
  const auto path = folder / "a.tar";
  const std::vector<std::pair<std::string, std::string>> labels = {
      {"cls", "3"},
      {"cls", "9223372036854775807"},
      {"cls", "1000000000000000"},
      {"json", "{\"label\": 18446744073709551615}"},
      {"json", "{\"label\": -1}"},
      {"cls", "16777216"}};
  {
    TarWriter tar(path);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      tar.add(std::to_string(i) + ".jpg",
              encode_jpeg(numbered_picture(static_cast<int>(i), 12, 12), 95));
      tar.add(std::to_string(i) + "." + labels[i].first, as_bytes(labels[i].second));
    }
    tar.finish();
  }
  const auto data = open_dataset({.path = path, .tolerate = 0.9});
  CHECK(data->info().classes == 4);
  all_rows(*data);
  CHECK(data->info().bad_rows == 5);
  refused({.path = path}, "a number from 0 to 16777215 is expected");
}

TEST_CASE("A valid .cls counts on either side of a .json without a valid label") {
  const TemporaryFolder folder;
  {
    TarWriter tar(folder / "a.tar");
    for (const std::string json : {"{\"label\": NaN}", "{\"label\": -1}"})
      for (const bool first : {false, true}) {
        const std::string key = std::to_string(json.size()) + (first ? "first" : "last");
        tar.add(key + (first ? ".json" : ".cls"), as_bytes(first ? json : "3"));
        tar.add(key + (first ? ".cls" : ".json"), as_bytes(first ? "3" : json));
        tar.add(key + ".jpg", encode_jpeg(numbered_picture(0, 12, 12), 95));
      }
    tar.finish();
  }
  CHECK(labels_of(*open_dataset({.path = folder / "a.tar"}))
        == std::vector<std::int64_t>{3, 3, 3, 3});
}

TEST_CASE("A temporary read error is retried, and no row counts as bad") {
  const TemporaryFolder folder;
  const auto data = open_dataset({.path = image_folder(folder), .tolerate = 0.9});
  const RepairedDisk at_the_end;
  disk().reason = EIO;
  disk().failing_reads = 2;
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(disk().failing_reads == 0);
  CHECK(disk().paused_ms == 100 + 200);
  disk().paused_ms = 0;
  disk().failing_reads = 1000;
  CHECK_THROWS_WITH_AS(all_rows(*data), doctest::Contains("in 5 attempts; check the disk"),
                       ReadError);
  CHECK(disk().failing_reads == 1000 - 5);
  CHECK(disk().paused_ms == 100 + 200 + 400 + 800);
  CHECK(data->info().bad_rows == 0);
}

TEST_CASE("Interrupted and partial reads continue without a pause") {
  const TemporaryFolder folder;
  const auto data = open_dataset({.path = image_folder(folder)});
  const RepairedDisk at_the_end;
  disk().reason = EINTR;
  disk().failing_reads = 100;
  disk().most_bytes = 7;
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(disk().failing_reads == 0);
  CHECK(disk().paused_ms == 0);
}

TEST_CASE("A table or a list of classes on a failing disk is refused instead of read in part") {
  const TemporaryFolder folder;
  write_text(folder / "a.csv", "x,label\n1,0\n2,1\n");
  const RepairedDisk at_the_end;
  disk().reason = EIO;
  disk().failing_reads = 2;
  CHECK(labels_of(*open_dataset({.path = folder / "a.csv"})) == std::vector<std::int64_t>{0, 1});
  CHECK(disk().failing_reads == 0);
  disk().failing_reads = 1000;
  CHECK_THROWS_AS(open_dataset({.path = folder / "a.csv"}), ReadError);
  CHECK_THROWS_AS(read_lines(folder / "a.csv"), ReadError);
  CHECK(read_lines(folder / "none").empty());
  disk().failing_reads = 0;
  CHECK(read_lines(folder / "a.csv") == std::vector<std::string>{"x,label", "1,0", "2,1"});
}

TEST_CASE("CIFAR files give their pictures and labels, fine and coarse") {
  const TemporaryFolder folder;
  write_text(folder / "data_batch_1.bin", cifar_row(1) + cifar_row(9));
  write_text(folder / "data_batch_2.bin", cifar_row(4));
  write_text(folder / "test_batch.bin", cifar_row(2));
  write_text(folder / "batches.meta.txt", "a\nb\n");
  const auto data = open_dataset({.path = folder.path()});
  CHECK(labels_of(*data) == std::vector<std::int64_t>{1, 9, 4});
  const auto batch = data->rows(at::tensor({2}, at::kLong), 0);
  for (int c = 0; c < 3; ++c)
    CHECK(batch.at("picture")[0][c][31][3].item<int>() == (c == 0 ? 14 : 10 + 10 * c));
  CHECK(labels_of(*open_dataset({.path = folder.path(), .split = "test"}))
        == std::vector<std::int64_t>{2});
  CHECK(data->info().names == std::vector<std::string>{"a", "b"});
  write_text(folder / "hundred" / "train.bin", cifar_row(77, 13));
  CHECK(labels_of(*open_dataset({.path = folder / "hundred"})) == std::vector<std::int64_t>{77});
  CHECK(labels_of(*open_dataset({.path = folder / "hundred", .label = "coarse"}))
        == std::vector<std::int64_t>{13});
  write_text(folder / "test_batch.bin", cifar_row(2) + cifar_row(12));
  refused({.path = folder / "test_batch.bin"},
          "test_batch.bin (its row 1): label 12 is out of range; it must be from 0 to 9");
  write_text(folder / "test_batch.bin", cifar_row(2).substr(1));
  refused({.path = folder / "test_batch.bin"}, "not a whole number of rows of 3073");
}

void write_gz(const std::filesystem::path& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  REQUIRE(gzwrite(file, text.data(), static_cast<unsigned>(text.size()))
          == static_cast<int>(text.size()));
  gzclose(file);
}

TEST_CASE("IDX files, compressed or not, are grey pictures with labels") {
  const TemporaryFolder folder;
  const auto pictures = folder / "train-images-idx3-ubyte";
  const auto labels = folder / "train-labels-idx1-ubyte";
  write_text(pictures, idx({2, 2, 3}, "abcdefghijkl"));
  write_text(labels, idx({2}, {7, 3}));
  const auto expected = all_rows(*open_dataset({.path = folder.path()}));
  CHECK(expected.at("picture").sizes() == at::IntArrayRef({2, 3, 2, 3}));
  for (int c = 0; c < 3; ++c)
    CHECK(expected.at("picture")[1][c][1][2].item<int>() == 'l');
  CHECK(expected.at("label")[0].item<int>() == 7);
  refused({.path = pictures, .classes = 5},
          "train-labels-idx1-ubyte (row 0): label 7 is out of range");
  write_text(pictures, idx({2, 60, 60}, "abcdefghijkl")); // as many as deflate could pack
  refused({.path = pictures}, "its dimension 1 is 60, more than the file can hold");
  std::filesystem::remove(pictures);
  std::filesystem::remove(labels);
  write_gz(folder / "train-images-idx3-ubyte.gz", idx({2, 2, 3}, "abcdefghijkl"));
  write_gz(folder / "train-labels-idx1-ubyte.gz", idx({2}, {7, 3}));
  const auto packed = all_rows(*open_dataset({.path = folder.path()}));
  CHECK(at::equal(packed.at("picture"), expected.at("picture")));
  write_gz(folder / "train-images-idx3-ubyte.gz", idx({2, 2, 3}, "abcdefghijk"));
  refused({.path = folder.path()}, "it ends too early");
  write_gz(folder / "train-images-idx3-ubyte.gz", idx({2, 1 << 20, 1 << 20}, "abcdefghijk"));
  refused({.path = folder.path()}, "more than the file can hold");
  write_gz(folder / "train-images-idx3-ubyte.gz", idx({3, 2, 2}, "abcdefghijkl"));
  refused({.path = folder.path()}, "has 2 labels for the 3 pictures");
  const auto packed_pictures = folder / "train-images-idx3-ubyte.gz";
  write_gz(packed_pictures, idx({2, 2, 3}, "abcdefghijkl"));
  const std::string damaged("\x1f\x8b\x08\0\0\0\0\0\0\xff\x07 continues", 21); // another part
  write_text(packed_pictures, read_text(packed_pictures) + damaged);
  refused({.path = folder.path()}, "invalid block type");
}

TEST_CASE("A path whose format cannot be determined is refused, and the error lists the formats") {
  const TemporaryFolder folder;
  refused({.path = folder.path()}, "give one of folder, tar, cifar10");
  refused({.path = folder / "nothing"}, "there is no such file or folder");
  refused({.path = "s3://bucket/pictures"}, "copy the data to this host");
  refused({.path = folder.path(), .format = "zip"}, "format: \"zip\" is not one of");
}

TEST_CASE("Files written by the Python packages read back with the same values") {
  const TemporaryFolder folder;
  const std::string command = std::string("sh ") + in_source()
                              + "/tests/learner/data/data_python.sh " + in_build() + " "
                              + folder.path().string();
  const int status = std::system(command.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    MESSAGE("skipped: the Python packages h5py, netCDF4, webdataset and Pillow cannot be had here");
    return;
  }
  REQUIRE(status == 0);
  const auto x = at::arange(24, at::kFloat).reshape({4, 6}) / 8;
  const auto label = at::tensor({3, 0, 1, 2}, at::kLong);
  for (const std::string name : {"a.npz", "packed.npz", "a.h5", "a.nc"}) {
    CAPTURE(name);
    const auto batch = all_rows(*open_dataset({.path = folder / name}));
    CHECK(at::equal(batch.at("x"), x));
    CHECK(at::equal(batch.at("label"), label));
  }
  CHECK(at::equal(all_rows(*open_dataset({.path = folder / "fortran.npy"})).at("fortran"), x));
  CHECK(at::equal(all_rows(*open_dataset({.path = folder / "a.csv"})).at("features"), x));
  const auto pictures = all_rows(*open_dataset({.path = folder / "pictures.npy"})).at("pictures");
  for (const std::string name : {"shards", "folder"}) {
    const auto batch = all_rows(*open_dataset({.path = folder / name}));
    CHECK(at::equal(batch.at("picture").permute({0, 2, 3, 1}), pictures));
    CHECK(at::equal(batch.at("label"), at::tensor({0, 0, 1, 1}, at::kLong)));
  }
}

} // namespace
} // namespace troupe::learner::data
