#include "learner/device/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <ATen/Functions.h>
#include <nlohmann/json.hpp>

#include "env/whole_file.hpp"

namespace troupe::learner {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kGreatestHeader =
    100'000'000; // bytes; the limit of the reference implementation

constexpr std::uint64_t kGreatestShape = std::uint64_t{1} << 59; // elements: bytes fit in 63 bits

struct Kind {
  const char* name;
  at::ScalarType type;
};
constexpr Kind kKinds[] = {{"F64", at::kDouble},
                           {"F32", at::kFloat},
                           {"BF16", at::kBFloat16},
                           {"I64", at::kLong},
                           {"U8", at::kByte}};

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw std::runtime_error(path.string() + " is not a safetensors file of this program: " + why);
}

void read_all(env::FileReader& file, void* data, std::uint64_t size) {
  if (!file.read(data, size))
    refuse(file.path(), "it is truncated");
}

std::string header_of(const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata) {
  json header = json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto* kind =
        std::find_if(std::begin(kKinds), std::end(kKinds),
                     [type = tensor.scalar_type()](const Kind& k) { return k.type == type; });
    if (kind == std::end(kKinds))
      throw std::invalid_argument("tensor " + name + " is " + at::toString(tensor.scalar_type())
                                  + "; float64, float32, bfloat16, int64 and uint8 can be written");
    header[name] = {{"dtype", kind->name},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + tensor.nbytes()}}};
    offset += tensor.nbytes();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // tensors begin at multiples of 8
  return text;
}

struct Entry {
  std::string name;
  at::ScalarType type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Entry entry_of(const fs::path& path, const std::string& name, const json& value,
               std::uint64_t data_bytes) {
  const auto bad = [&](const std::string& rule) { refuse(path, "tensor " + name + ": " + rule); };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape")
      || !value.contains("data_offsets"))
    bad("dtype, shape and data_offsets are needed");
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2
      || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned())
    bad("dtype must be a string, shape a list, data_offsets two numbers");
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& k) {
    return dtype.get<std::string>() == k.name;
  });
  if (kind == std::end(kKinds))
    bad("type " + dtype.get<std::string>() + " is none of F64, F32, BF16, I64, U8");
  Entry entry{
      name, kind->type, {}, offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
  if (entry.begin > entry.end || entry.end > data_bytes)
    bad("data_offsets " + std::to_string(entry.begin) + " to " + std::to_string(entry.end)
        + " are outside the " + std::to_string(data_bytes) + " bytes of data");
  std::uint64_t bytes = at::elementSize(kind->type);
  std::uint64_t elements = 1; // of the sizes that are not 0
  for (const json& size : shape) {
    if (!size.is_number_unsigned())
      bad("shape must be a list of sizes");
    const auto n = size.get<std::uint64_t>();
    if (n != 0 && elements > kGreatestShape / n) // even if another size is 0
      bad("its shape is too large");
    elements *= std::max<std::uint64_t>(n, 1);
    if (n != 0 && bytes > data_bytes / n)
      bad("its shape needs more bytes than the file has");
    bytes *= n;
    entry.shape.push_back(static_cast<std::int64_t>(n));
  }
  if (bytes != entry.end - entry.begin)
    bad("its shape needs " + std::to_string(bytes) + " bytes, its data_offsets give "
        + std::to_string(entry.end - entry.begin));
  return entry;
}

std::vector<Entry> entries_of(const fs::path& path, const json& header, std::uint64_t data_bytes,
                              Safetensors& file) {
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(path, name, value, data_bytes));
      continue;
    }
    if (!value.is_object())
      refuse(path, "__metadata__ must hold strings by name");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string())
        refuse(path, "__metadata__ " + key + " must be a string");
      file.metadata[key] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      refuse(path, "tensor " + entry.name + " overlaps another or leaves a gap");
    at = entry.end;
  }
  if (at != data_bytes)
    refuse(path, std::to_string(data_bytes - at) + " bytes after the last tensor belong to none");
  return entries;
}

} // namespace

void write_safetensors(const fs::path& path, const TensorMap& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_of(tensors, metadata);
  env::WholeFileWriter file(path);
  const std::uint64_t length =
      header.size(); // little-endian, like every machine that LibTorch runs on
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor flat = tensor.detach().to(at::kCPU).contiguous();
    file.write(flat.const_data_ptr(), flat.nbytes());
  }
  file.commit();
}

Safetensors read_safetensors(const fs::path& path) {
  env::FileReader file(path);
  const std::uint64_t size = file.left();
  std::uint64_t length = 0;
  if (size < sizeof length)
    refuse(path, "it has " + std::to_string(size) + " bytes");
  read_all(file, &length, sizeof length);
  if (length > kGreatestHeader || length > size - sizeof length)
    refuse(path, "a header of " + std::to_string(length) + " bytes does not fit in a file of "
                     + std::to_string(size));
  std::string text(length, '\0');
  read_all(file, text.data(), length);
  const json header = json::parse(text, nullptr, false);
  if (!header.is_object())
    refuse(path, "its header is not a JSON object");
  Safetensors made;
  for (const Entry& entry : entries_of(path, header, size - sizeof length - length, made)) {
    at::Tensor tensor = at::empty(entry.shape, at::dtype(entry.type));
    read_all(file, tensor.mutable_data_ptr(), tensor.nbytes());
    made.tensors[entry.name] = std::move(tensor);
  }
  return made;
}

} // namespace troupe::learner
