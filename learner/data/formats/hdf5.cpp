#include <hdf5.h>

#include <optional>
#include <utility>

#include "learner/data/formats/array_file.hpp"
#include "learner/data/formats/hdf5_writer.hpp"
#include "learner/data/formats/open_dataset.hpp"
#include "learner/data/pictures/file.hpp"

namespace troupe::learner::data {
namespace {

constexpr int kMostDepth = 16; // of nested groups

/// HDF5 calls this before it follows a link to another file, even in the middle of a path.
herr_t refuse_other_file(const char*, const char*, const char*, const char*, unsigned*, hid_t,
                         void*) {
  return -1;
}

/// Owns one HDF5 identifier.
class Handle {
public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  void reset() {
    if (id_ >= 0)
      close_(std::exchange(id_, -1));
  }

  operator hid_t() const { return id_; } // NOLINT: what the library takes
  bool valid() const { return id_ >= 0; }

private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// While this object lives, only its thread uses the library, which prints nothing.
class QuietLock {
public:
  QuietLock() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~QuietLock() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  QuietLock(const QuietLock&) = delete;
  QuietLock& operator=(const QuietLock&) = delete;

private:
  const std::lock_guard<std::mutex> lock_{hdf5_mutex()};
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

herr_t keep_reason(unsigned, const H5E_error2_t* error, void* reason) {
  if (error->desc != nullptr)
    *static_cast<std::string*>(reason) = error->desc;
  return 0;
}

[[noreturn]] void fail(const std::string& source, const std::string& what) {
  std::string reason; // the innermost one in HDF5's error stack
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  throw DataError(source + ": " + what + (reason.empty() ? "" : ": " + reason));
}

/// The type as which the numbers are read, or nullopt for an unsupported type.
std::optional<at::ScalarType> type_of(hid_t type) {
  const auto size = H5Tget_size(type);
  if (H5Tget_class(type) == H5T_FLOAT)
    return size == 4   ? std::optional(at::kFloat)
           : size == 8 ? std::optional(at::kDouble)
                       : std::nullopt;
  if (H5Tget_class(type) == H5T_ENUM && size == 1) // NumPy's bool
    return at::kChar;
  if (H5Tget_class(type) != H5T_INTEGER)
    return {};
  if (H5Tget_sign(type) == H5T_SGN_NONE)
    return size == 1  ? std::optional(at::kByte)
           : size < 8 ? std::optional(at::kLong)
                      : std::nullopt;
  return size == 1 ? at::kChar : size == 2 ? at::kShort : size <= 4 ? at::kInt : at::kLong;
}

hid_t memory_type(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return H5T_NATIVE_FLOAT;
  case at::kDouble:
    return H5T_NATIVE_DOUBLE;
  case at::kByte:
    return H5T_NATIVE_UINT8;
  case at::kChar:
    return H5T_NATIVE_INT8;
  case at::kShort:
    return H5T_NATIVE_INT16;
  case at::kInt:
    return H5T_NATIVE_INT32;
  default:
    return H5T_NATIVE_INT64;
  }
}

class Hdf5File final : public ArrayFile {
public:
  explicit Hdf5File(std::string path)
      : path_(std::move(path)),
        own_links_(H5Pcreate(H5P_LINK_ACCESS), H5Pclose),
        file_(H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {
    if (!own_links_.valid() || H5Pset_elink_cb(own_links_, refuse_other_file, nullptr) < 0)
      fail(path_, "is not opened: HDF5 cannot be kept from following links to other files");
    if (!file_.valid())
      fail(path_, "is not a readable HDF5 file (truncated?)");
    find(file_, "", 0);
  }
  ~Hdf5File() override {
    const QuietLock lock;
    sets_.clear();
    file_.reset();
    own_links_.reset();
  }

  const std::vector<FoundArray>& arrays() const override { return arrays_; }

  void read(std::size_t array, std::int64_t first, std::int64_t count, void* to) const override {
    const QuietLock lock;
    const auto& about = arrays_[array];
    std::vector<hsize_t> begin(about.shape.size(), 0), size(about.shape.begin(), about.shape.end());
    begin[0] = static_cast<hsize_t>(first);
    size[0] = static_cast<hsize_t>(count);
    const Handle space(H5Dget_space(sets_[array]), H5Sclose);
    const Handle memory(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
                        H5Sclose);
    if (!space.valid() || !memory.valid()
        || H5Sselect_hyperslab(space, H5S_SELECT_SET, begin.data(), nullptr, size.data(), nullptr)
               < 0
        || H5Dread(sets_[array], memory_type(about.type), memory, space, H5P_DEFAULT, to) < 0)
      fail(path_, "rows " + std::to_string(first) + " to " + std::to_string(first + count - 1)
                      + " of \"" + about.name + "\" cannot be read");
  }

private:
  void find(hid_t group, const std::string& prefix, int depth) {
    H5G_info_t about;
    if (depth > kMostDepth || H5Gget_info(group, &about) < 0)
      fail(path_, "its group \"" + prefix + "\" cannot be read, or is too deep");
    for (hsize_t i = 0; i < about.nlinks; ++i) {
      char name[256] = {};
      if (H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name, sizeof name,
                             H5P_DEFAULT)
          < 0)
        fail(path_, "a name in its group \"" + prefix + "\" cannot be read");
      H5L_info_t link;
      if (H5Lget_info_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, &link, H5P_DEFAULT) < 0
          || link.type == H5L_TYPE_EXTERNAL)
        refuse_others(prefix + name);
      Handle object(H5Oopen_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, own_links_),
                    H5Oclose);
      if (!object.valid())
        continue; // a dangling link
      if (H5Iget_type(object) == H5I_GROUP)
        find(object, prefix + name + "/", depth + 1);
      else if (H5Iget_type(object) == H5I_DATASET)
        add(std::move(object), prefix + name);
    }
  }

  /// Otherwise a data set could expose other files of the user who reads it.
  [[noreturn]] void refuse_others(const std::string& name) const {
    throw DataError(path_ + ": \"" + name
                    + "\" refers to another file (an external link, external storage or a virtual "
                      "data set), which is not read; copy the data into one file, for example with "
                      "h5repack");
  }

  /// For another filter, the library would load a plug-in, or find none.
  void check_filters(hid_t making, const std::string& name) const {
    const int count = H5Pget_nfilters(making);
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0, config = 0;
      std::size_t values = 0;
      const H5Z_filter_t filter = H5Pget_filter2(making, static_cast<unsigned>(i), &flags, &values,
                                                 nullptr, 0, nullptr, &config);
      if (filter < H5Z_FILTER_DEFLATE || filter > H5Z_FILTER_SCALEOFFSET)
        throw DataError(
            path_ + ": \"" + name + "\" is stored with filter " + std::to_string(filter)
            + ", which is not built into the HDF5 library, and plug-ins are not loaded; "
              "convert it, for example with h5repack -f GZIP=4");
    }
  }

  void add(Handle set, const std::string& name) {
    const Handle making(H5Dget_create_plist(set), H5Pclose);
    if (!making.valid() || H5Pget_external_count(making) != 0
        || H5Pget_layout(making) == H5D_VIRTUAL)
      refuse_others(name);
    check_filters(making, name);
    const Handle space(H5Dget_space(set), H5Sclose), stored(H5Dget_type(set), H5Tclose);
    const int dimensions = H5Sget_simple_extent_ndims(space);
    const auto type = type_of(stored);
    if (dimensions < 1 || dimensions > 16 || !type)
      return;
    std::vector<hsize_t> shape(static_cast<std::size_t>(dimensions));
    H5Sget_simple_extent_dims(space, shape.data(), nullptr);
    arrays_.push_back({name, {shape.begin(), shape.end()}, *type});
    sets_.push_back(std::move(set));
  }

  std::string path_;
  Handle own_links_; // links within the file are followed, other links refused
  Handle file_;
  std::vector<FoundArray> arrays_;
  std::vector<Handle> sets_;
};

/// A file being written.
class Hdf5Output final : public Hdf5Writer {
public:
  explicit Hdf5Output(std::string path)
      : path_(std::move(path)),
        file_(H5Fcreate(path_.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose),
        boolean_(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose) {
    const std::int8_t no = 0, yes = 1;
    if (!file_.valid() || !boolean_.valid() || H5Tenum_insert(boolean_, "FALSE", &no) < 0
        || H5Tenum_insert(boolean_, "TRUE", &yes) < 0)
      fail(path_, "cannot be written");
  }
  ~Hdf5Output() override {
    const QuietLock lock;
    file_.reset();
    boolean_.reset();
  }

  void group(const std::string& name) override {
    const QuietLock lock;
    const Handle made(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      H5Gclose);
    if (!made.valid())
      fail(path_, "its group \"" + name + "\" cannot be written");
  }

  void add(const std::string& name, const at::Tensor& values) override {
    const at::Tensor dense = values.contiguous();
    const std::vector<hsize_t> shape(dense.sizes().begin(), dense.sizes().end());
    const QuietLock lock;
    const hid_t type = dense.scalar_type() == at::kBool ? static_cast<hid_t>(boolean_)
                                                        : memory_type(dense.scalar_type());
    const Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                       H5Sclose);
    const Handle set(
        H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
        H5Dclose);
    if (!space.valid() || !set.valid()
        || H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dense.const_data_ptr()) < 0)
      fail(path_, "\"" + name + "\" cannot be written");
  }

  void attribute(const std::string& group, const std::string& name, std::int64_t value) override {
    const QuietLock lock;
    const Handle where(H5Gopen2(file_, group.c_str(), H5P_DEFAULT), H5Gclose);
    const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
    const Handle made(
        H5Acreate2(where, name.c_str(), H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT),
        H5Aclose);
    if (!made.valid() || H5Awrite(made, H5T_NATIVE_INT64, &value) < 0)
      fail(path_, "the attribute \"" + name + "\" of \"" + group + "\" cannot be written");
  }

  void flush() override {
    const QuietLock lock;
    if (H5Fflush(file_, H5F_SCOPE_LOCAL) < 0)
      fail(path_, "cannot be written");
  }

private:
  std::string path_;
  Handle file_;
  Handle boolean_; // as h5py writes bool
};

} // namespace

std::unique_ptr<Hdf5Writer> make_hdf5_writer(const std::filesystem::path& path) {
  const QuietLock lock;
  return std::make_unique<Hdf5Output>(path.string());
}

std::unique_ptr<const ArrayFile> open_hdf5_arrays(const std::string& path) {
  const QuietLock lock;
  if (H5PLset_loading_state(0) < 0) // otherwise a file could choose plug-ins to load
    fail(path, "is not opened: HDF5 cannot be kept from loading plug-ins");
  return std::make_unique<Hdf5File>(path);
}

std::unique_ptr<DescribedDataset> open_hdf5(const DatasetOptions& options) {
  DatasetInfo info{.format = "hdf5", .bytes = File(options.path).size()};
  return make_file_table(open_hdf5_arrays(options.path.string()), std::move(info), options);
}

} // namespace troupe::learner::data
