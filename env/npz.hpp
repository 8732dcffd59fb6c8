#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::env {

/// One NumPy array: little-endian numbers in C order (Fortran order is converted).
struct NpyArray {
  std::string type; // NumPy's name: "<f8", "<f4", "<f2", "<i8", "<i4", "<i2", "|i1", "|u1", "|b1"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  std::size_t elements() const;
  std::vector<double> as_doubles() const; // any of the types above but "<f2"
};

/// What a reader accepts of a file from outside.
struct NpzLimits {
  std::size_t file_bytes = std::size_t{256} << 20;
  std::size_t array_bytes = std::size_t{256} << 20; // of one array, unpacked
  std::size_t total_bytes = std::size_t{1}
                            << 30; // of all arrays, unpacked; never more than 1100 times the file
  std::size_t arrays = 4096;
};

/// Arrays of an .npz archive by name, without ".npy". All input is treated as untrusted: sizes,
/// checksums and header text are checked, and memory is bounded by the limits. Throws
/// std::runtime_error, which names `source` and the fault; encrypted archives and pickled objects
/// are refused.
std::map<std::string, NpyArray> parse_npz(std::span<const std::byte> file,
                                          const std::string& source, const NpzLimits& limits = {});
std::map<std::string, NpyArray> read_npz(const std::string& path, const NpzLimits& limits = {});

/// One .npy file's bytes.
NpyArray parse_npy(std::span<const std::byte> file, const std::string& source);

} // namespace troupe::env
