#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "env/npz.hpp"

namespace troupe::env {

namespace {

constexpr std::size_t kMostHeaderBytes = 65536;

[[noreturn]] void fail_npy(const std::string& source, const std::string& what) {
  throw std::runtime_error(source + " is not a readable NumPy array: " + what);
}

std::size_t type_bytes(const std::string& type, const std::string& source) {
  if (type == "<f8" || type == "<i8")
    return 8;
  if (type == "<f4" || type == "<i4")
    return 4;
  if (type == "<f2" || type == "<i2")
    return 2;
  if (type == "|u1" || type == "|b1" || type == "|i1")
    return 1;
  if (type.starts_with('>'))
    fail_npy(source, "its numbers are big-endian ('" + type.substr(0, 16)
                         + "'); save it with array.astype(array.dtype.newbyteorder('<'))");
  fail_npy(source,
           "its type is '" + type.substr(0, 16)
               + "'; float64, float32, float16, int64, int32, int16, int8, uint8 and bool are "
                 "read");
}

/// Reads the header's text, e.g. {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
class Header {
public:
  Header(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  std::string type() { return std::string(quoted("'descr':")); }

  bool fortran_order() {
    const std::string_view rest = after("'fortran_order':");
    if (rest.starts_with("True"))
      return true;
    if (!rest.starts_with("False"))
      fail_npy(source_, "its order is neither C's nor Fortran's");
    return false;
  }

  std::vector<std::int64_t> shape() {
    std::string_view rest = after("'shape':");
    if (!rest.starts_with('(') || rest.find(')') == std::string_view::npos)
      fail_npy(source_, "its shape is missing");
    rest = rest.substr(1, rest.find(')') - 1);
    std::vector<std::int64_t> shape;
    while (true) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" ,"), rest.size()));
      if (rest.empty())
        return shape;
      std::int64_t value = 0;
      std::size_t digits = 0;
      for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
        if (value < (std::int64_t{1} << 40))
          value = value * 10 + (rest[digits] - '0');
      if (digits == 0 || value >= (std::int64_t{1} << 40) || shape.size() == 16)
        fail_npy(source_, "its shape is malformed");
      shape.push_back(value);
      rest.remove_prefix(digits);
    }
  }

private:
  std::string_view after(std::string_view key) const {
    const std::size_t at = text_.find(key);
    if (at == std::string_view::npos)
      fail_npy(source_, "its header lacks " + std::string(key));
    std::string_view rest = text_.substr(at + key.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest;
  }

  std::string_view quoted(std::string_view key) const {
    const std::string_view rest = after(key);
    const std::size_t end = rest.find('\'', 1);
    if (!rest.starts_with('\'') || end == std::string_view::npos)
      fail_npy(source_, "its type is missing (a structured array?)");
    return rest.substr(1, end - 1);
  }

  std::string_view text_;
  const std::string& source_;
};

/// Converts from Fortran order (the first index varies fastest) to C order.
void to_c_order(NpyArray& array, std::size_t element) {
  const std::size_t dimensions = array.shape.size();
  std::vector<std::size_t> strides(dimensions, element), index(dimensions, 0);
  for (std::size_t d = 1; d < dimensions; ++d)
    strides[d] = strides[d - 1] * static_cast<std::size_t>(array.shape[d - 1]);
  std::vector<std::byte> ordered(array.bytes.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < ordered.size(); to += element) {
    std::memcpy(ordered.data() + to, array.bytes.data() + from, element);
    for (std::size_t d = dimensions; d-- > 0;) {
      from += strides[d];
      if (++index[d] < static_cast<std::size_t>(array.shape[d]))
        break;
      from -= strides[d] * index[d];
      index[d] = 0;
    }
  }
  array.bytes = std::move(ordered);
}

template <typename T>
void widen(const std::vector<std::byte>& bytes, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

} // namespace

std::size_t NpyArray::elements() const {
  std::size_t count = 1;
  for (const std::int64_t n : shape)
    count *= static_cast<std::size_t>(n);
  return count;
}

std::vector<double> NpyArray::as_doubles() const {
  std::vector<double> out(elements());
  if (type == "<f8")
    widen<double>(bytes, out);
  else if (type == "<f4")
    widen<float>(bytes, out);
  else if (type == "<i8")
    widen<std::int64_t>(bytes, out);
  else if (type == "<i4")
    widen<std::int32_t>(bytes, out);
  else if (type == "<i2")
    widen<std::int16_t>(bytes, out);
  else if (type == "|i1")
    widen<std::int8_t>(bytes, out);
  else if (type == "|u1" || type == "|b1")
    widen<std::uint8_t>(bytes, out);
  else
    throw std::runtime_error("NumPy numbers of type '" + type + "' cannot be widened");
  return out;
}

NpyArray parse_npy(std::span<const std::byte> file, const std::string& source) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (file.size() < 12 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    fail_npy(source, "it does not begin with NumPy's magic bytes");
  const int version = static_cast<int>(file[6]);
  const std::size_t width = version == 1 ? 2 : 4;
  if (version < 1 || version > 3)
    fail_npy(source, "its version is " + std::to_string(version));
  std::size_t length = 0;
  for (std::size_t i = 0; i < width; ++i)
    length |= static_cast<std::size_t>(file[8 + i]) << (8 * i);
  if (length > kMostHeaderBytes || length > file.size() - 8 - width)
    fail_npy(source, "its header is too long (truncated?)");
  Header header({reinterpret_cast<const char*>(file.data()) + 8 + width, length}, source);
  NpyArray array;
  array.type = header.type();
  array.shape = header.shape();
  const auto data = file.subspan(8 + width + length);
  const std::size_t element = type_bytes(array.type, source);
  std::size_t bytes = element;
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end())
    bytes = 0;
  for (const std::int64_t n : array.shape) { // the product never exceeds the available bytes, so it
                                             // cannot overflow
    if (n > 0 && bytes > data.size() / static_cast<std::size_t>(n))
      fail_npy(source, "it has fewer numbers than its shape says");
    bytes *= static_cast<std::size_t>(n);
  }
  if (bytes != data.size())
    fail_npy(source, "it has " + std::to_string(data.size()) + " bytes of numbers; its shape needs "
                         + std::to_string(bytes));
  array.bytes.assign(data.begin(), data.end());
  if (header.fortran_order() && array.shape.size() > 1)
    to_c_order(array, element);
  return array;
}

} // namespace troupe::env
