#include "env/wrappers/dictionary.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "env/nearest_names.hpp"
#include "env/wrappers/narrow.hpp"
#include "env/wrappers/pixels.hpp"

namespace troupe::env {

namespace {
const std::string kPixels = "pixels";
}

Dictionary::Dictionary(std::unique_ptr<Environment> wrapped, const std::vector<std::string>& names,
                       const PixelOptions& options)
    : ObservationWrapper(std::move(wrapped)) {
  if (names.empty())
    throw std::invalid_argument("environment " + spec_.name
                                + ": a dictionary needs at least one name, e.g. \"state\"");
  std::vector<ArraySpec> arrays;
  for (const std::string& name : names) {
    for (const ArraySpec& before : arrays)
      if (before.name == name)
        throw std::invalid_argument("observations: '" + name + "' is named twice; name it once");
    ArraySpec array;
    parts_.push_back(make_part(name, options, array));
    arrays.push_back(std::move(array));
  }
  spec_.goal = {};
  std::vector<std::size_t> order(parts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t i) { return arrays[i].is_picture(); });
  std::vector<Part> parts;
  spec_.observations.clear();
  for (const std::size_t i : order) {
    parts.push_back(std::move(parts_[i]));
    spec_.observations.push_back(std::move(arrays[i]));
  }
  parts_ = std::move(parts);
  for (std::size_t i = 0; i < parts_.size(); ++i)
    parts_[i].offset = spec_.observation_offset(i);
}

Dictionary::Part Dictionary::make_part(const std::string& name, const PixelOptions& options,
                                       ArraySpec& array) {
  if (const std::size_t bracket = name.find('['); bracket != std::string::npos)
    return make_chosen(name, bracket, options, array);
  Part part;
  const auto& inner_arrays = inner_spec().observations;
  const auto own = std::find_if(inner_arrays.begin(), inner_arrays.end(),
                                [&](const ArraySpec& a) { return a.name == name; });
  if (own != inner_arrays.end()) {
    part.arrays = {static_cast<std::size_t>(own - inner_arrays.begin())};
    array = *own;
    if (is_floating(array.type))
      array.type = ElementType::float32;
    if (array.shape.empty()) // gives frames an axis to stack along
      array.shape = {1};
  } else if (name == "state") {
    array = {name, ElementType::float32, {0}};
    for (std::size_t i = 0; i < inner_arrays.size(); ++i)
      if (is_floating(inner_arrays[i].type)) {
        part.arrays.push_back(i);
        array.shape[0] += static_cast<std::int64_t>(inner_arrays[i].elements());
      }
    if (part.arrays.empty())
      throw std::invalid_argument("observations: environment " + spec_.name
                                  + " has no floating-point arrays to build 'state' from");
  } else if (name == kPixels || name.starts_with(kPixels + "/")) {
    PixelOptions view = options;
    if (name != kPixels) {
      view.cameras.clear();
      view.camera = name.substr(kPixels.size() + 1);
    }
    part.cameras = per_camera(view);
    for (const PixelOptions& camera : part.cameras)
      check_can_be_drawn(*this, camera);
    const auto channels = static_cast<std::int64_t>(part.cameras.size()) * (view.grey ? 1 : 3);
    array = {name, ElementType::uint8, {channels, view.height, view.width}};
  } else {
    std::vector<std::string> known = {"state", kPixels};
    for (const ArraySpec& inner_array : inner_arrays)
      known.push_back(inner_array.name);
    std::string message = "observations: '" + name + "' is not an observation of environment "
                          + spec_.name + "; it has";
    for (const std::string& other : known)
      message += " '" + other + "'";
    throw std::invalid_argument(message + " and 'pixels/<camera>'; nearest: '"
                                + nearest_names(name, known, 1).front() + "'");
  }
  return part;
}

/// Parses "position[0,2]": some numbers of an array.
Dictionary::Part Dictionary::make_chosen(const std::string& name, std::size_t bracket,
                                         const PixelOptions& options, ArraySpec& array) {
  Part part = make_part(name.substr(0, bracket), options, array);
  const std::size_t count = array.elements();
  if (array.type != ElementType::float32 || !part.cameras.empty())
    throw std::invalid_argument("observations: '" + name + "' selects elements of "
                                + element_name(array.type)
                                + "; only elements of floating-point arrays can be selected");
  const char* at = name.data() + bracket;
  const char* const end = name.data() + name.size();
  do {
    std::size_t number = count;
    const auto [behind, error] = std::from_chars(at + 1, end, number);
    if (error != std::errc() || number >= count || behind == end
        || (*behind != ',' && (*behind != ']' || behind + 1 != end)))
      throw std::invalid_argument("observations: '" + name + "' must end with numbers from 0 to "
                                  + std::to_string(count - 1) + ", as in \"state[0,2]\"");
    part.chosen.push_back(number);
    at = behind;
  } while (*at == ',');
  whole_.resize(std::max(whole_.size(), count));
  array = {name, ElementType::float32, {static_cast<std::int64_t>(part.chosen.size())}};
  return part;
}

void Dictionary::write_arrays(const Part& part, std::byte* out) const {
  for (const std::size_t i : part.arrays) {
    const ArraySpec& array = inner_spec().observations[i];
    const std::byte* in = inner_array(i);
    if (is_floating(array.type)) {
      narrow_to_float32(spec_.name, array, in, out);
      out += array.elements() * sizeof(float);
    } else {
      std::memcpy(out, in, array.bytes());
    }
  }
}

void Dictionary::write(std::span<std::byte> observation) {
  if (renderers_.empty()) {
    std::vector<std::unique_ptr<Renderer>> made; // kept only if all of them can be made
    for (const Part& part : parts_)
      for (const PixelOptions& camera : part.cameras)
        made.push_back(make_renderer(*physics(), camera));
    renderers_ = std::move(made);
  }
  std::size_t renderer = 0;
  for (const Part& part : parts_) {
    std::byte* out = observation.data() + part.offset;
    if (part.chosen.empty()) {
      write_arrays(part, out);
    } else {
      write_arrays(part, reinterpret_cast<std::byte*>(whole_.data()));
      for (const std::size_t number : part.chosen) {
        std::memcpy(out, &whole_[number], sizeof(float));
        out += sizeof(float);
      }
    }
    for (std::size_t i = 0; i < part.cameras.size(); ++i, ++renderer) {
      const std::size_t bytes = renderers_[renderer]->bytes();
      renderers_[renderer]->draw({reinterpret_cast<std::uint8_t*>(out), bytes});
      out += bytes;
    }
  }
}

} // namespace troupe::env
