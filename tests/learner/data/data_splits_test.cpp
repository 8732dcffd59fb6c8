#include <doctest/doctest.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include "learner/data/formats/open_dataset.hpp"
#include "tests/learner/data/data_fixture.hpp"

namespace troupe::learner::data {
namespace {

TEST_CASE("Splits are folders, and a missing split is refused") {
  const TemporaryFolder folder;
  for (const std::string split : {"train", "validation"})
    write_bytes(folder / split / "a" / "0.jpg", encode_jpeg(numbered_picture(0, 8, 8), 95));
  write_bytes(folder / "train" / "a" / "1.jpg", encode_jpeg(numbered_picture(1, 8, 8), 95));
  CHECK(open_dataset({.path = folder.path()})->size() == 2);
  CHECK(open_dataset({.path = folder.path(), .split = "test"})->size() == 1);
  refused({.path = folder / "train", .split = "validation"}, "no such folder");
  refused({.path = folder / "train", .split = "half"}, "split: \"half\" must be");
  refused({.path = folder / "train", .classes = 1, .names = {"b"}}, "has other classes");
}

/// Writes one grey picture of 1 x 1 pixel for each label.
void write_digits(const std::filesystem::path& folder, const std::string& split,
                  const std::string& labels) {
  const auto rows = static_cast<int>(labels.size());
  write_text(folder / (split + "-images-idx3-ubyte"), idx({rows, 1, 1}, labels));
  write_text(folder / (split + "-labels-idx1-ubyte"), idx({rows}, labels));
}

TEST_CASE(
    "The validation split of a single file is refused, because the file may hold training rows") {
  const TemporaryFolder folder;
  write_digits(folder.path(), "train", {1, 2});
  write_text(folder / "data_batch_1.bin", cifar_row(1));
  write_text(folder / "a.csv", "x,label\n1,0\n");
  for (const char* name : {"train-images-idx3-ubyte", "data_batch_1.bin", "a.csv"}) {
    CAPTURE(name);
    CHECK(open_dataset({.path = folder / name})->size() > 0);
    refused({.path = folder / name, .split = "validation"}, "there is no such folder");
  }
}

TEST_CASE("Data that need no splits are read as a whole, or else only their validation split") {
  const TemporaryFolder folder;
  const auto labels = [&](const std::filesystem::path& path) {
    return labels_of(*open_dataset({.path = path, .split = "validation", .requires_split = false}));
  };
  write_digits(folder / "digits", "train", {1, 2});
  write_digits(folder / "digits", "t10k", {3});
  CHECK(labels(folder / "digits") == std::vector<std::int64_t>{3});
  CHECK(labels(folder / "digits" / "train-images-idx3-ubyte") == std::vector<std::int64_t>{1, 2});
  write_text(folder / "objects" / "data_batch_1.bin", cifar_row(1));
  write_text(folder / "objects" / "test_batch.bin", cifar_row(4));
  CHECK(labels(folder / "objects") == std::vector<std::int64_t>{4});
  write_text(folder / "table" / "a.csv", "x,label\n1,5\n");
  CHECK(labels(folder / "table") == std::vector<std::int64_t>{5});
  write_text(folder / "both" / "train" / "a.csv", "x,label\n1,6\n");
  refused({.path = folder / "both", .split = "validation", .requires_split = false},
          "there is no such folder");
  write_text(folder / "both" / "validation" / "a.csv", "x,label\n1,7\n");
  CHECK(labels(folder / "both") == std::vector<std::int64_t>{7});
}

TEST_CASE("Names in the header of a CSV identify the features and the label for other files") {
  const TemporaryFolder folder;
  const auto info = [&](const std::string& text) {
    write_text(folder / "a.csv", text);
    return open_dataset({.path = folder / "a.csv"})->info();
  };
  const auto named = info("a,b,class\n1,2,0\n");
  CHECK(named.features == std::vector<std::string>{"a", "b"});
  CHECK(named.label == "class");
  write_text(folder / "b.csv", "class,b,more,a\n0,2,9,1\n");
  const auto other = all_rows(
      *open_dataset({.path = folder / "b.csv", .label = named.label, .columns = named.features}));
  CHECK(at::equal(other.at("features"), at::tensor({1.F, 2.F}).reshape({1, 2})));
  CHECK(info("a,a,class\n1,2,0\n").features.empty());
  CHECK(info("1,2,0\n").features.empty());
}

} // namespace
} // namespace troupe::learner::data
