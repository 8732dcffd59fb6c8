#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::env {

/// One NumPy array: little-endian numbers in C order (arrays in Fortran order are converted).
struct NpyArray {
  std::string type; // NumPy's name: "<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::size_t elements() const;
  std::vector<double> as_doubles() const; // of any of the types above except "<f2"
};

/// Limits on a file from outside.
struct NpzLimits {
  std::size_t file_bytes = std::size_t{256} << 20;
  std::size_t array_bytes = std::size_t{256} << 20; // of one array, unpacked
  std::size_t total_bytes = std::size_t{1}
                            << 30; // of all arrays, unpacked; never more than 1100 times the file
  std::size_t arrays = 4096;
};

/// Returns the arrays of an .npz archive by name, without ".npy". All input is treated as
/// untrusted: sizes, checksums and header text are checked, and the limits bound the memory. Throws
/// std::runtime_error naming `source` and the fault; encrypted archives and pickled objects are
/// refused.
std::map<std::string, NpyArray> parse_npz(std::span<const std::byte> file,
                                          const std::string& source, const NpzLimits& limits = {});
std::map<std::string, NpyArray> read_npz(const std::string& path, const NpzLimits& limits = {});

/// Parses the bytes of one .npy file.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& source);

} // namespace troupe::env
