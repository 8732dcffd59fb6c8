#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>

#include <hdf5.h>
#include <netcdf.h>

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>

#include <nlohmann/json.hpp>

#include "learner/data/formats/array_file.hpp"
#include "learner/data/formats/minari.hpp"
#include "learner/data/formats/minari_spaces.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/pictures/data_error.hpp"
#include "replay/recordings/recording.hpp"
#include "tests/learner/data/data_fixture.hpp"

namespace troupe::learner::data {
namespace {

TEST_CASE("CSV supports columns by name or number, quotes, and labels of three kinds") {
  const TemporaryFolder folder;
  const auto path = folder / "a.csv";
  write_text(path, "\"a\",\"the \"\"b\"\"\",label\r\n1,-2.5,0\r\n\n\"3\",4e1,2\r\n");
  auto data = open_dataset({.path = path});
  auto batch = all_rows(*data);
  CHECK(at::equal(batch.at("features"), at::tensor({1.F, -2.5F, 3.F, 40.F}).reshape({2, 2})));
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 2});
  CHECK(data->info().classes == 3);
  batch = all_rows(*open_dataset({.path = path, .label = "0", .columns = {"the \"b\""}}));
  CHECK(at::equal(batch.at("features"), at::tensor({-2.5F, 40.F}).reshape({2, 1})));
  CHECK(at::equal(batch.at("label"), at::tensor({1, 3}, at::kLong)));
  write_text(path, "1,2,cat\n3,4,\"dog\nfish\"\n5,6,cat");
  data = open_dataset({.path = path});
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 1, 0});
  CHECK(data->info().names == std::vector<std::string>{"cat", "dog\nfish"});
  write_text(path, "1,2,0.5\n3,4,1\n");
  batch = all_rows(*open_dataset({.path = path}));
  CHECK(at::equal(batch.at("label"), at::tensor({0.5F, 1.F})));
  write_text(folder / "more" / "1.csv", "x,label\n1,0\n");
  write_text(folder / "more" / "2.csv", "x,label\n2,1\n3,1\n");
  CHECK(labels_of(*open_dataset({.path = folder / "more"})) == std::vector<std::int64_t>{0, 1, 1});
  write_text(folder / "more" / "2.csv", "y,label\n2,1\n");
  refused({.path = folder / "more"}, "2.csv:1: its header differs from that of the first file");
}

TEST_CASE("Text labels get the class numbers of the given names") {
  const TemporaryFolder folder;
  const auto path = folder / "a.csv";
  write_text(path, "x,label\n1,fish\n2,dog\n");
  const std::vector<std::string> names = {"cat", "dog", "fish"};
  const auto data = open_dataset({.path = path, .classes = 3, .names = names});
  CHECK(labels_of(*data) == std::vector<std::int64_t>{2, 1});
  CHECK(data->info().names == names);
  refused({.path = path, .classes = 2, .names = {"cat", "dog"}},
          "a.csv:2: column 1 (\"label\"): label \"fish\" is not one of the classes");
}

TEST_CASE("An error in a CSV is reported with its file, line and column") {
  const TemporaryFolder folder;
  const auto path = folder / "a.csv";
  write_text(path, "x,y,label\n1,2,0\n1,2\n");
  refused({.path = path}, "a.csv:3: has 2 fields; the first line has 3");
  write_text(path, "x,y,label\n1,2,0\n1,two,1\n");
  refused({.path = path}, "a.csv:3: column 1 (\"y\"): \"two\" is not a finite number");
  write_text(path, "x,y,label\n1,2,0\n1,nan,1\n");
  refused({.path = path}, "a.csv:3: column 1 (\"y\"): \"nan\" is not a finite number");
  write_text(path, "x,y,label\n1,2,0\n1,2,5\n");
  refused({.path = path, .classes = 5},
          "a.csv:3: column 2 (\"label\"): label \"5\" is out of range");
  write_text(path, "x,y,label\n1,2,0\n1,\"2,5\n");
  refused({.path = path}, "a.csv:3: has a quote that is never closed");
  write_text(path, "x,y,label\n");
  refused({.path = path}, "has no rows");
  refused({.path = path, .label = "z"}, "a.csv:1: there is no column \"z\"");
  refused({.path = path, .header = "perhaps"}, "header: \"perhaps\"");
  write_text(path, "x,label\n1,0\n2\n3,1\n4,\n");
  const auto data = open_dataset({.path = path, .tolerate = 0.5});
  CHECK(labels_of(*data) == std::vector<std::int64_t>{0, 1, 1, 0});
  CHECK(data->info().bad_rows == 2);
  CHECK(data->info().messages.size() == 2);
}

std::string npy(const std::string& type, bool fortran, const std::string& shape,
                const std::string& values) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False")
                       + ", 'shape': " + shape + ", }";
  header.resize(117, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header
         + values;
}

TEST_CASE("NumPy arrays are read in C and Fortran order, and big-endian arrays are refused") {
  const TemporaryFolder folder;
  const auto path = folder / "x.npy";
  write_text(path, npy("|u1", false, "(2, 3)", {1, 2, 3, 4, 5, 6}));
  const auto data = open_dataset({.path = path});
  CHECK(data->info().columns.at(0).name == "x");
  const auto expected = all_rows(*data).at("x");
  CHECK(at::equal(expected, at::tensor({1, 2, 3, 4, 5, 6}, at::kByte).reshape({2, 3})));
  write_text(path, npy("|u1", true, "(2, 3)", {1, 4, 2, 5, 3, 6}));
  CHECK(at::equal(all_rows(*open_dataset({.path = path})).at("x"), expected));
  write_text(path, npy(">i2", false, "(2,)", {0, 1, 0, 2}));
  refused({.path = path}, "big-endian");
  write_text(path, npy("<i2", false, "(3,)", {0, 1, 0, 2}));
  refused({.path = path}, "fewer numbers than its shape says");
}

TEST_CASE("Labels that are whole numbers are classes, also as floating-point numbers") {
  const TemporaryFolder folder;
  const auto with_labels = [&](const std::vector<float>& labels) {
    const std::string bytes(reinterpret_cast<const char*>(labels.data()),
                            labels.size() * sizeof(float));
    write_text(folder / "label.npy", npy("<f4", false, "(3,)", bytes));
    return open_dataset({.path = folder / "label.npy"});
  };
  CHECK(with_labels({0, 2, 1})->info().classes == 3);
  CHECK(labels_of(*with_labels({0, 2, 1})) == std::vector<std::int64_t>{0, 2, 1});
  for (const float other : {2.5F, NAN, 1e30F, -1.F})
    CHECK(with_labels({0, other, 1})->info().columns.at(0).type == "float32");
  write_text(folder / "a.csv", "x,label\n1,0.0\n2,1e0\n");
  CHECK(labels_of(*open_dataset({.path = folder / "a.csv", .classes = 2}))
        == std::vector<std::int64_t>{0, 1});
}

std::filesystem::path write_hdf5(const TemporaryFolder& folder) {
  const auto path = folder / "a.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "deep", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const auto put = [](hid_t where, const char* name, hid_t stored, hid_t memory,
                      const std::vector<hsize_t>& shape, const void* values) {
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t set = H5Dcreate2(where, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    REQUIRE(H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Sclose(space);
  };
  const float x[] = {0, 1, 10, 11, 20, 21};
  const std::int64_t label[] = {2, 0, 1}, other[] = {1, 2};
  put(group, "x", H5T_IEEE_F32BE, H5T_NATIVE_FLOAT, {3, 2}, x);
  put(file, "label", H5T_STD_I32LE, H5T_NATIVE_INT64, {3}, label);
  put(file, "other", H5T_STD_I32LE, H5T_NATIVE_INT64, {2}, other);
  H5Gclose(group);
  H5Fclose(file);
  return path;
}

TEST_CASE("HDF5 arrays become columns, rows are fetched by number, and labels are checked") {
  const TemporaryFolder folder;
  const auto path = write_hdf5(folder);
  auto data = open_dataset({.path = path});
  CHECK(data->size() == 3);
  const auto batch = data->rows(at::tensor({2, 0, 1}, at::kLong), 0);
  CHECK(batch.size() == 2); // "other" has fewer rows than the label
  CHECK(at::equal(batch.at("deep/x"),
                  at::tensor({20.F, 21.F, 0.F, 1.F, 10.F, 11.F}).reshape({3, 2})));
  CHECK(at::equal(batch.at("label"), at::tensor({1, 2, 0}, at::kLong)));
  refused({.path = path, .columns = {"other"}}, "\"other\" has 2 rows, \"label\" 3");
  refused({.path = path, .columns = {"none"}}, "has no array \"none\" of numbers");
  refused({.path = path, .classes = 2}, "a.h5: row 0: label 2 is out of range");
  auto bytes = bytes_of(path);
  bytes.resize(bytes.size() / 2);
  data.reset(); // the HDF5 library shares a file that is already open
  write_bytes(path, bytes);
  refused({.path = path}, "a.h5: is not a readable HDF5 file");
}

TEST_CASE("HDF5 files that refer to other files are refused") {
  const TemporaryFolder folder;
  const auto secret = write_hdf5(folder); // a.h5
  const auto made = [&](const std::string& name, const auto& fill) {
    const auto path = (folder / name).string();
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    fill(file);
    H5Fclose(file);
    return path;
  };
  const hsize_t rows = 3;
  const auto stored = [&](hid_t file, hid_t making) {
    const hid_t space = H5Screate_simple(1, &rows, nullptr);
    H5Dclose(H5Dcreate2(file, "data", H5T_STD_U8LE, space, H5P_DEFAULT, making, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(making);
  };
  const auto link = made("link.h5", [&](hid_t file) {
    H5Lcreate_external(secret.c_str(), "/label", file, "label", H5P_DEFAULT, H5P_DEFAULT);
  });
  const auto through = made("through.h5", [&](hid_t file) {
    H5Lcreate_external(secret.c_str(), "/", file, "z", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/z/label", file, "label", H5P_DEFAULT, H5P_DEFAULT);
  });
  const auto outside = made("outside.h5", [&](hid_t file) {
    const hid_t making = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(making, "/etc/hostname", 0, 3);
    stored(file, making);
  });
  const auto pieces = made("pieces.h5", [&](hid_t file) {
    const hid_t making = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t space = H5Screate_simple(1, &rows, nullptr);
    H5Pset_virtual(making, space, secret.c_str(), "/label", space);
    H5Sclose(space);
    stored(file, making);
  });
  for (const std::string& path : {link, through, outside, pieces})
    for (const std::string format : {"hdf5", "netcdf"})
      refused({.path = path, .format = format}, "refers to another file");
}

TEST_CASE("HDF5 reads filters that are built in, refuses others and loads no plug-ins") {
  const TemporaryFolder folder;
  const hsize_t rows = 64;
  const auto made = [&](const std::string& name, H5Z_filter_t filter) {
    const auto path = (folder / name).string();
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t making = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &rows, nullptr);
    const unsigned level = 9;
    H5Pset_chunk(making, 1, &rows);
    H5Pset_shuffle(making);
    REQUIRE(H5Pset_filter(making, filter, H5Z_FLAG_OPTIONAL, 1, &level) >= 0);
    const hid_t set =
        H5Dcreate2(file, "label", H5T_STD_I32LE, space, H5P_DEFAULT, making, H5P_DEFAULT);
    const std::vector<std::int64_t> ones(rows, 1);
    REQUIRE(H5Dwrite(set, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data()) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Pclose(making);
    H5Fclose(file);
    return path;
  };
  const auto packed = made("packed.h5", H5Z_FILTER_DEFLATE);
  CHECK(labels_of(*open_dataset({.path = packed})) == std::vector<std::int64_t>(rows, 1));
  constexpr H5Z_filter_t kZstd = 32015; // its number in the HDF Group's registry
  for (const std::string format : {"hdf5", "netcdf"})
    refused({.path = made(format + ".h5", kZstd), .format = format},
            "\"label\" is stored with filter 32015, which is not built into");
  unsigned plugins = H5PL_ALL_PLUGIN;
  REQUIRE(H5PLget_loading_state(&plugins) >= 0);
  CHECK(plugins == 0);
}

TEST_CASE("NetCDF variables become columns along the label's dimension") {
  const TemporaryFolder folder;
  for (const int mode : {0, NC_NETCDF4}) {
    const auto path = folder / (mode == 0 ? "classic.nc" : "four.nc");
    int file = 0, rows = 0, wide = 0, x = 0, label = 0, axis = 0;
    REQUIRE(nc_create(path.c_str(), NC_CLOBBER | mode, &file) == NC_NOERR);
    REQUIRE(nc_def_dim(file, "time", NC_UNLIMITED, &rows) == NC_NOERR);
    REQUIRE(nc_def_dim(file, "wide", 2, &wide) == NC_NOERR);
    const int both[] = {rows, wide};
    REQUIRE(nc_def_var(file, "axis", NC_DOUBLE, 1, &wide, &axis) == NC_NOERR);
    REQUIRE(nc_def_var(file, "x", NC_FLOAT, 2, both, &x) == NC_NOERR);
    REQUIRE(nc_def_var(file, "y", NC_INT, 1, &rows, &label) == NC_NOERR);
    REQUIRE(nc_enddef(file) == NC_NOERR);
    const std::size_t begin[] = {0, 0}, size[] = {3, 2};
    const float values[] = {0, 1, 10, 11, 20, 21};
    const int labels[] = {2, 0, 1};
    REQUIRE(nc_put_vara_float(file, x, begin, size, values) == NC_NOERR);
    REQUIRE(nc_put_vara_int(file, label, begin, size, labels) == NC_NOERR);
    REQUIRE(nc_close(file) == NC_NOERR);
    const auto data = open_dataset({.path = path, .label = "y"});
    const auto batch = data->rows(at::tensor({1, 2}, at::kLong), 0);
    CHECK(batch.size() == 2);
    CHECK(at::equal(batch.at("x"), at::tensor({10.F, 11.F, 20.F, 21.F}).reshape({2, 2})));
    CHECK(at::equal(batch.at("label"), at::tensor({0, 1}, at::kLong)));
  }
  write_text(folder / "bad.nc", "CDF\x01 and nothing more");
  refused({.path = folder / "bad.nc"}, "bad.nc: is not a readable NetCDF file");
}

TEST_CASE("Missing numbers and packed variables of NetCDF are refused") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, int mode, nc_type type, const auto& describe) {
    const auto path = folder / name;
    int file = 0, rows = 0, x = 0;
    REQUIRE(nc_create(path.c_str(), NC_CLOBBER | mode, &file) == NC_NOERR);
    REQUIRE(nc_def_dim(file, "time", NC_UNLIMITED, &rows) == NC_NOERR);
    REQUIRE(nc_def_var(file, "x", type, 1, &rows, &x) == NC_NOERR);
    describe(file, x);
    REQUIRE(nc_enddef(file) == NC_NOERR);
    for (const auto& [row, value] : {std::pair<std::size_t, double>{0, 1}, {2, 100}}) {
      const std::size_t one = 1;
      REQUIRE(nc_put_vara_double(file, x, &row, &one, &value) == NC_NOERR); // skips row 1
    }
    REQUIRE(nc_close(file) == NC_NOERR);
    return path;
  };
  const auto nothing = [](int, int) {};
  for (const int mode : {0, NC_NETCDF4})
    for (const nc_type type : {NC_FLOAT, NC_DOUBLE, NC_SHORT, NC_INT}) {
      CAPTURE(mode);
      CAPTURE(type);
      const auto path = make("default.nc", mode, type, nothing);
      const auto good = open_dataset({.path = path})->rows(at::tensor({2, 0}, at::kLong), 0);
      CHECK(at::equal(good.at("x").to(at::kDouble), at::tensor({100., 1.}, at::kDouble)));
      refused({.path = path}, "default.nc: row 1 of \"x\" has a missing number");
    }
  const auto bytes = all_rows(*open_dataset({.path = make("bytes.nc", 0, NC_BYTE, nothing)}));
  CHECK(bytes.at("x")[1].item<int>() == NC_FILL_BYTE);
  const auto attribute = [](const char* name, nc_type type, double value) {
    return [=](int file, int x) {
      REQUIRE(nc_put_att_double(file, x, name, type, 1, &value) == NC_NOERR);
    };
  };
  refused({.path = make("zero.nc", 0, NC_BYTE, attribute("_FillValue", NC_BYTE, 0))},
          "row 1 of \"x\" has a missing number");
  refused({.path = make("nan.nc", 0, NC_FLOAT, attribute("_FillValue", NC_FLOAT, NAN))},
          "row 1 of \"x\" has a missing number");
  const auto other = make("other.nc", 0, NC_DOUBLE, attribute("missing_value", NC_DOUBLE, 100));
  CHECK_THROWS_WITH_AS(open_dataset({.path = other})->rows(at::tensor({2}, at::kLong), 0),
                       doctest::Contains("row 2 of \"x\""), DataError);
  for (const char* name : {"scale_factor", "add_offset"})
    refused({.path = make("packed.nc", 0, NC_SHORT, attribute(name, NC_FLOAT, 2))},
            "packed.nc: \"x\" is packed");
}

TEST_CASE("Actions are exported to Minari as the environment played them") {
  const TemporaryFolder folder;
  replay::RecordingSpec spec{.frame = {"state", env::ElementType::float32, {1}},
                             .action_size = 2,
                             .action_minimum = {-4, -INFINITY},
                             .action_maximum = {0, INFINITY},
                             .about = {{"action_clip", "0.5"}}};
  replay::Episode episode(spec);
  const float frame[] = {0};
  episode.begin(std::as_bytes(std::span(frame)));
  for (const std::vector<float>& action :
       {std::vector<float>{0.25F, 0.25F}, {-0.9F, -0.9F}, {0.5F, 2.F}})
    episode.append(action, 1, 1, std::as_bytes(std::span(frame)));
  const auto record = [&](const char* name) {
    replay::RecordingWriter writer(folder / name, spec);
    writer.add(episode);
    writer.commit();
    return folder / name;
  };
  export_minari(record("recording"), folder / "minari", "a-v0");
  const auto metadata = nlohmann::json::parse(read_text(folder / "minari/data/metadata.json"));
  const std::string space = metadata.at("action_space");
  CHECK(space.find(R"("low": [-4.0, -Infinity], "high": [0.0, Infinity])") != std::string::npos);
  const auto file = open_hdf5_arrays(folder / "minari/data/main_data.hdf5");
  const auto& arrays = file->arrays();
  const auto found = std::ranges::find(arrays, "episode_0/actions", &FoundArray::name);
  REQUIRE(found != arrays.end());
  REQUIRE((found->type == at::kFloat));
  std::vector<float> actions(6);
  file->read(static_cast<std::size_t>(found - arrays.begin()), 0, 3, actions.data());
  CHECK(actions == std::vector<float>{-1.5F, 0.25F, -3, -0.5F, -1, 0.5F});
  for (const char* clip : {"0", "2", "nan", "0.5x", ""}) {
    CAPTURE(clip);
    spec.about["action_clip"] = clip;
    CHECK_THROWS_AS(
        export_minari(record(("bad" + std::string(clip)).c_str()), folder / "x", "a-v0"),
        DataError);
  }
}

TEST_CASE("Minari's action spaces without choices, or with lists of other lengths, are refused") {
  const auto space = [](const std::string& text) { return nlohmann::json::parse(text); };
  const Actions dice =
      actions_of(space(R"({"type": "MultiDiscrete", "nvec": [2, 3], "start": [1, 5]})"));
  CHECK(dice.choices == std::vector<std::int64_t>{2, 3});
  CHECK(dice.stored(6, 1) == 1);
  for (const char* text : {R"({"type": "MultiDiscrete", "nvec": [2, 3], "start": [1]})",
                           R"({"type": "MultiDiscrete", "nvec": [2, 3], "start": 1})",
                           R"({"type": "MultiDiscrete", "nvec": [2, 0]})",
                           R"({"type": "Discrete", "n": 0})", R"({"type": "Discrete", "n": -3})"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(actions_of(space(text)), doctest::Contains("needs at least one value"),
                         std::invalid_argument);
  }
  CHECK_THROWS_WITH_AS(
      actions_of(space(R"({"type": "Box", "shape": [2], "low": [0, 0], "high": [1]})")),
      doctest::Contains("number 1 of the action space has no finite bounds"),
      std::invalid_argument);
}

} // namespace
} // namespace troupe::learner::data
