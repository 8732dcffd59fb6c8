#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>

namespace troupe::learner::data {

/// A new HDF5 file of arrays in groups, which is complete once the object is destroyed. Each call
/// locks hdf5_mutex(). Throws DataError.
class Hdf5Writer {
public:
  virtual ~Hdf5Writer() = default;

  virtual void group(const std::string& name) = 0;
  /// Adds an array of float32, float64, uint8, int64 or bool. The groups before the last '/' of its
  /// name must exist.
  virtual void add(const std::string& name, const at::Tensor& values) = 0;
  virtual void attribute(const std::string& group, const std::string& name, std::int64_t value) = 0;
  /// Writes everything added so far to the file.
  virtual void flush() = 0;
};

std::unique_ptr<Hdf5Writer> make_hdf5_writer(const std::filesystem::path& path);

} // namespace troupe::learner::data
