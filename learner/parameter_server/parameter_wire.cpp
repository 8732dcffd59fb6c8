#include "learner/parameter_server/parameter_wire.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::learner {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int kMostGroups = 4096;
constexpr int kMostNumbers = 64; // limit per param group
constexpr int kMostSegments = 1 << 20;

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kDouble, at::kBFloat16};

} // namespace

wire::Slice encode(const ServedSlice& slice) {
  wire::Slice out;
  out.mutable_recipe()->set_name(slice.recipe.name);
  for (const auto& group : slice.recipe.groups) {
    auto& made = *out.mutable_recipe()->add_groups();
    for (const auto& [name, value] : group) {
      auto& number = *made.add_numbers();
      number.set_name(name);
      number.set_value(value);
    }
  }
  for (const Segment& segment : slice.segments) {
    auto& made = *out.add_segments();
    made.set_parameter(segment.parameter);
    made.set_group(segment.group);
    made.set_begin(segment.begin);
    made.set_count(segment.count);
  }
  const auto type = std::find(std::begin(kTypes), std::end(kTypes), slice.type);
  out.set_type(static_cast<std::uint32_t>(type - std::begin(kTypes)) + 1);
  return out;
}

std::optional<ServedSlice> decode(const wire::Slice& slice, std::string& why) {
  if (slice.type() < 1 || slice.type() > std::size(kTypes)) {
    why = "a slice of parameters of an unknown type";
    return std::nullopt;
  }
  if (slice.recipe().groups_size() > kMostGroups || slice.segments_size() > kMostSegments
      || slice.recipe().name().size() > 256) {
    why = "a slice of parameters of too many groups or segments";
    return std::nullopt;
  }
  ServedSlice out;
  out.type = kTypes[slice.type() - 1];
  out.recipe.name = slice.recipe().name();
  for (const auto& group : slice.recipe().groups()) {
    if (group.numbers_size() > kMostNumbers) {
      why = "a param group of too many numbers";
      return std::nullopt;
    }
    auto& numbers = out.recipe.groups.emplace_back();
    for (const auto& number : group.numbers())
      numbers[number.name()] = number.value();
  }
  std::int64_t elements = 0;
  for (const auto& segment : slice.segments()) {
    if (segment.count() < 1 || segment.count() > kMostElements - elements || segment.begin() < 0
        || segment.parameter() < 0 || segment.group() < 0
        || segment.group() >= slice.recipe().groups_size()) {
      why = "a segment of parameters that is impossible";
      return std::nullopt;
    }
    elements += segment.count();
    out.segments.push_back({.parameter = segment.parameter(),
                            .group = segment.group(),
                            .begin = segment.begin(),
                            .count = segment.count()});
  }
  return out;
}

std::optional<wire::Envelope> decode_envelope(const std::string& header, std::string& why) {
  wire::Envelope head;
  if (!head.ParseFromString(header)) {
    why = "bytes that are not a message of a parameter server";
    return std::nullopt;
  }
  if (head.protocol() != kParameterProtocol) {
    why = "a message of protocol " + std::to_string(head.protocol()) + "; this side speaks "
          + std::to_string(kParameterProtocol);
    return std::nullopt;
  }
  if (head.body_case() == wire::Envelope::BODY_NOT_SET) {
    why = "an empty message";
    return std::nullopt;
  }
  return head;
}

std::vector<env::wire::Frame> frames_of(const at::Tensor& tensor, env::wire::Socket& socket,
                                        const std::string& peer) {
  const auto* bytes = static_cast<const std::byte*>(tensor.const_data_ptr());
  std::vector<env::wire::Frame> frames;
  for (std::size_t begin = 0; begin < tensor.nbytes(); begin += kFrameBytes) {
    const std::size_t size = std::min(kFrameBytes, tensor.nbytes() - begin);
    frames.push_back(socket.frame(size, peer));
    std::memcpy(frames.back().bytes().data(), bytes + begin, size);
  }
  return frames;
}

bool copy_frames(const std::vector<env::wire::Frame>& frames, at::Tensor& tensor) {
  std::size_t total = 0;
  for (const auto& frame : frames)
    total += frame.size();
  if (total != tensor.nbytes())
    return false;
  auto* out = static_cast<std::byte*>(tensor.mutable_data_ptr());
  for (const auto& frame : frames) {
    const auto bytes = std::as_const(frame).bytes();
    std::memcpy(out, bytes.data(), bytes.size());
    out += bytes.size();
  }
  return true;
}

} // namespace troupe::learner
