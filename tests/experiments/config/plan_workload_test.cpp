#include "experiments/config/plan_workload.hpp"

#include "tests/doctest_torch.hpp"

#include <filesystem>
#include <fstream>

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include "experiments/config/config.hpp"
#include "learner/data/formats/hdf5_writer.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/text.hpp"

using namespace troupe;
using namespace troupe::experiments;

namespace {

namespace fs = std::filesystem;

const std::string kTable = "a,b,label\n1,2,0\n3,4,1\n";

fs::path written(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
  return path;
}

/// Plans a classifier's run and returns what it is refused for; "" if it is not.
std::string complaint_on(const fs::path& data, const fs::path& validation,
                         const std::string& keys = "") {
  return error_of([&] {
    actors::RunConfig config;
    plan_workload(parse_experiment("data { path: \"" + data.string() + "\" validation: \""
                                       + validation.string() + "\" " + keys
                                       + " } classifier { model: \"mlp\" batch_size: 2 }",
                                   "x"),
                  config);
  });
}

/// A file of four rows of features with labels in the array "y".
fs::path labelled(const fs::path& path, const at::Tensor& labels,
                  const std::vector<std::int64_t>& features = {4, 2}) {
  const auto file = learner::data::make_hdf5_writer(path);
  file->add("features", at::ones(features));
  file->add("y", labels);
  return path;
}

} // namespace

TEST_CASE("Validation rows come from the validation split, or from data without splits") {
  const TemporaryFolder folder;
  const auto table = written(folder / "table.csv", kTable);
  written(folder / "both" / "train" / "t.csv", kTable);
  written(folder / "both" / "validation" / "v.csv", "a,b,label\n1,2\n");
  CHECK(complaint_on(table, table).empty());
  CHECK(has(complaint_on(table, folder / "both"), "v.csv:2: has 2 fields"));
  CHECK(has(complaint_on(table, ""), "split is \"validation\""));
}

TEST_CASE("The columns of validation data are those that the header of training data names") {
  const TemporaryFolder folder;
  const auto table = written(folder / "table.csv", kTable);
  CHECK(complaint_on(table, written(folder / "other.csv", "label,b,a\n0,2,1\n")).empty());
  CHECK(complaint_on(table, written(folder / "bare.csv", "1,2,0\n")).empty()); // by position
  CHECK(has(complaint_on(table, written(folder / "less.csv", "a,c,label\n1,2,0\n")),
            "there is no column \"b\""));
}

TEST_CASE("The columns, the header and the number of classes of a table can be given") {
  const TemporaryFolder folder;
  const auto table = written(folder / "table.csv", "a,b,label\n1,two,0\n3,4,1\n");
  CHECK(has(complaint_on(table, table), "\"two\" is not a finite number"));
  CHECK(complaint_on(table, table, "columns: \"a\"").empty());
  CHECK(has(complaint_on(table, table, "columns: \"a\" header: \"no\""),
            "there is no column \"a\"; it has 3 columns, numbered from 0"));
  CHECK(
      has(complaint_on(table, table, "columns: \"a\" classes: 1"), "label \"1\" is out of range"));
}

TEST_CASE("Labels of arrays are whole numbers of any type, and mistakes name data.label") {
  const TemporaryFolder folder;
  const std::string label = "label: \"y\"";
  const auto whole = labelled(folder / "whole.h5", at::tensor({0., 1., 2., 1.}, at::kDouble));
  CHECK(complaint_on(whole, whole, label).empty());
  CHECK(
      has(complaint_on(whole, whole), "data.label is empty, and data.path has no array \"label\""));
  CHECK(has(complaint_on(whole, whole), "which may be features or y"));
  const auto real = labelled(folder / "real.h5", at::tensor({0., 1., 0.5, 1.}, at::kDouble));
  CHECK(has(complaint_on(real, real, label), "data.label: the label in data.path is float64"));
  const auto flat = labelled(folder / "flat.h5", at::tensor({0, 1, 0, 1}, at::kLong), {4});
  CHECK(has(complaint_on(flat, flat, label), "\"features\" must have 2 dimensions"));
}
