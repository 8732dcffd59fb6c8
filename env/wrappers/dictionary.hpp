#pragma once

#include "env/render/renderer.hpp"
#include "env/wrappers/observation_wrapper.hpp"

namespace troupe::env {

/// Gives several named arrays in one observation, any mix of states and pictures. Pictures come
/// first; each kind is in the order of `names`:
///   "state"            all floating-point arrays of the inner environment as one float32 [n]
///   "pixels"           the picture of options.camera (or of all options.cameras, their channels
///                      concatenated), uint8 [channels, height, width]
///   "pixels/<camera>"  the picture of another camera
///   any other          the inner array of this name; float64 becomes float32, a scalar [1]
///   "<name>[0,2]"      these numbers of "state" or of an inner array, float32 [n]; an agent that
///                      does not see the others needs a memory
/// A number that is not finite causes a std::runtime_error naming its array. The constructor throws
/// std::invalid_argument if there are no names, a name is given twice or unknown (with the nearest
/// names), or pictures are requested from an environment without physics. For the arrays that
/// agents accept, see learner::transition_spec().
class Dictionary final : public ObservationWrapper {
public:
  Dictionary(std::unique_ptr<Environment> inner, const std::vector<std::string>& names,
             const PixelOptions& options = {});

private:
  struct Part {
    std::vector<std::size_t> arrays;   // indices of the inner environment's arrays
    std::vector<PixelOptions> cameras; // for a picture
    std::vector<std::size_t> chosen;   // indices of the shown numbers; empty: all
    std::size_t offset = 0;            // in the observation
  };
  Part make_chosen(const std::string& name, std::size_t bracket, const PixelOptions& options,
                   ArraySpec& array);
  void write_arrays(const Part& part, std::byte* out) const;
  Part make_part(const std::string& name, const PixelOptions& options, ArraySpec& array);
  void write(std::span<std::byte> observation) override;

  std::vector<Part> parts_;
  std::vector<float> whole_;                         // all numbers of a part that shows only some
  std::vector<std::unique_ptr<Renderer>> renderers_; // made on the thread of the first reset()
};

} // namespace troupe::env
