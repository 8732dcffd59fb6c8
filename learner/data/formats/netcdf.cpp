#include <hdf5.h>
#include <netcdf.h>

#include <cmath>
#include <limits>
#include <optional>

#include <ATen/ops/from_blob.h>

#include "learner/data/formats/array_file.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

std::optional<at::ScalarType> type_of(nc_type type) {
  switch (type) {
  case NC_FLOAT:
    return at::kFloat;
  case NC_DOUBLE:
    return at::kDouble;
  case NC_UBYTE:
    return at::kByte;
  case NC_BYTE:
    return at::kChar;
  case NC_SHORT:
    return at::kShort;
  case NC_INT:
    return at::kInt;
  case NC_USHORT:
  case NC_UINT:
  case NC_INT64:
    return at::kLong;
  default: // text, and numbers beyond int64
    return {};
  }
}

/// The value of elements that were never written, unless the variable has a _FillValue. Bytes have
/// none, because each of their values may be a number.
std::optional<double> default_fill(nc_type type) {
  switch (type) {
  case NC_FLOAT:
    return NC_FILL_FLOAT;
  case NC_DOUBLE:
    return NC_FILL_DOUBLE;
  case NC_SHORT:
    return NC_FILL_SHORT;
  case NC_INT:
    return NC_FILL_INT;
  case NC_USHORT:
    return NC_FILL_USHORT;
  case NC_UINT:
    return NC_FILL_UINT;
  case NC_INT64:
    return static_cast<double>(NC_FILL_INT64);
  default:
    return {};
  }
}

/// A variable that can be read, and the values that stand for missing numbers.
struct NetcdfVariable {
  int id = 0;
  std::vector<double> missing{};
};

class NetcdfFile final : public ArrayFile {
public:
  explicit NetcdfFile(std::string path) : path_(std::move(path)) {
    const std::lock_guard lock(hdf5_mutex());
    check(nc_open(path_.c_str(), NC_NOWRITE, &file_), "is not a readable NetCDF file");
    try {
      find();
    } catch (...) {
      nc_close(file_);
      throw;
    }
  }
  ~NetcdfFile() override {
    const std::lock_guard lock(hdf5_mutex());
    nc_close(file_);
  }
  NetcdfFile(const NetcdfFile&) = delete;
  NetcdfFile& operator=(const NetcdfFile&) = delete;

  const std::vector<FoundArray>& arrays() const override { return arrays_; }

  void read(std::size_t array, std::int64_t first, std::int64_t count, void* to) const override {
    const std::lock_guard lock(hdf5_mutex());
    const auto& about = arrays_[array];
    std::vector<std::size_t> begin(about.shape.size(), 0),
        size(about.shape.begin(), about.shape.end());
    begin[0] = static_cast<std::size_t>(first);
    size[0] = static_cast<std::size_t>(count);
    check(fetch(variables_[array].id, about.type, begin.data(), size.data(), to),
          "rows " + std::to_string(first) + " to " + std::to_string(first + count - 1) + " of \""
              + about.name + "\" cannot be read");
    if (variables_[array].missing.empty() || count == 0)
      return;
    auto shape = about.shape;
    shape[0] = count;
    const auto numbers = at::from_blob(to, shape, about.type).reshape({count, -1}).to(at::kDouble);
    for (const double one : variables_[array].missing) {
      const auto found = (std::isnan(one) ? numbers.isnan() : numbers.eq(one)).any(1);
      if (found.any().item<bool>())
        throw DataError(path_ + ": row "
                        + std::to_string(first + found.nonzero()[0][0].item<std::int64_t>())
                        + " of \"" + about.name
                        + "\" has a missing number (the variable's fill value or missing_value)");
    }
  }

private:
  void check(int result, const std::string& what) const {
    if (result != NC_NOERR)
      throw DataError(path_ + ": " + what + ": " + nc_strerror(result));
  }

  int fetch(int variable, at::ScalarType type, const std::size_t* begin, const std::size_t* size,
            void* to) const {
    switch (type) {
    case at::kFloat:
      return nc_get_vara_float(file_, variable, begin, size, static_cast<float*>(to));
    case at::kDouble:
      return nc_get_vara_double(file_, variable, begin, size, static_cast<double*>(to));
    case at::kByte:
      return nc_get_vara_uchar(file_, variable, begin, size, static_cast<unsigned char*>(to));
    case at::kChar:
      return nc_get_vara_schar(file_, variable, begin, size, static_cast<signed char*>(to));
    case at::kShort:
      return nc_get_vara_short(file_, variable, begin, size, static_cast<short*>(to));
    case at::kInt:
      return nc_get_vara_int(file_, variable, begin, size, static_cast<int*>(to));
    default:
      return nc_get_vara_longlong(file_, variable, begin, size, static_cast<long long*>(to));
    }
  }

  void find() {
    int variables = 0;
    check(nc_inq_nvars(file_, &variables), "its variables cannot be read");
    for (int variable = 0; variable < variables; ++variable) {
      char name[NC_MAX_NAME + 1] = {};
      nc_type stored = NC_NAT;
      int dimensions = 0;
      int ids[NC_MAX_VAR_DIMS] = {};
      check(nc_inq_var(file_, variable, name, &stored, &dimensions, ids, nullptr),
            "variable " + std::to_string(variable) + " cannot be read");
      const auto type = type_of(stored);
      if (!type || dimensions < 1)
        continue;
      FoundArray found{name, {}, *type};
      for (int i = 0; i < dimensions; ++i) {
        std::size_t length = 0;
        check(nc_inq_dimlen(file_, ids[i], &length), "a dimension cannot be read");
        found.shape.push_back(static_cast<std::int64_t>(length));
      }
      if (has_attribute(variable, "scale_factor") || has_attribute(variable, "add_offset"))
        found.problem = "is packed (scale_factor, add_offset); unpack it first (ncpdq -U of NCO)";
      arrays_.push_back(std::move(found));
      variables_.push_back({variable, missing_values(variable, stored)});
    }
  }

  bool has_attribute(int variable, const char* name) const {
    int number = 0;
    return nc_inq_attid(file_, variable, name, &number) == NC_NOERR;
  }

  std::vector<double> missing_values(int variable, nc_type stored) const {
    std::vector<double> all;
    for (const char* name : {"_FillValue", "missing_value"}) {
      std::size_t length = 0;
      if (nc_inq_attlen(file_, variable, name, &length) != NC_NOERR || length == 0)
        continue;
      std::vector<double> values(length);
      if (nc_get_att_double(file_, variable, name, values.data()) == NC_NOERR) // no text
        all.insert(all.end(), values.begin(), values.end());
    }
    int unfilled = 0;
    check(nc_inq_var_fill(file_, variable, &unfilled, nullptr), "a fill value cannot be read");
    if (const auto fill = default_fill(stored);
        fill && unfilled == 0 && !has_attribute(variable, "_FillValue"))
      all.push_back(*fill);
    for (double& value : all) // the attribute may be more precise than the variable
      if (stored == NC_FLOAT && std::abs(value) <= std::numeric_limits<float>::max())
        value = static_cast<float>(value);
    return all;
  }

  std::string path_;
  int file_ = -1;
  std::vector<FoundArray> arrays_;
  std::vector<NetcdfVariable> variables_; // of arrays_
};

} // namespace

std::unique_ptr<DescribedDataset> open_netcdf(const DatasetOptions& options) {
  DatasetInfo info{.format = "netcdf", .bytes = File(options.path).size()};
  const auto path = options.path.string();
  bool is_hdf5 = false;
  {
    const std::lock_guard lock(hdf5_mutex());
    is_hdf5 = H5Fis_hdf5(path.c_str()) > 0;
  }
  if (is_hdf5)
    open_hdf5_arrays(path); // refuses references to other files
  return make_file_table(std::make_unique<NetcdfFile>(path), std::move(info), options);
}

} // namespace troupe::learner::data
