#include <stdexcept>

#include "env/caster/cuda/batch_caster.hpp"

namespace troupe::env {

std::string no_batch_caster(int) {
  return "this program was built without CUDA (no toolkit was found, or TROUPE_CUDA is OFF); "
         "configure with -DTROUPE_CUDA=ON where nvcc is on the PATH, or draw with RayCaster, which "
         "needs no GPU";
}

std::unique_ptr<BatchCaster> make_batch_caster(std::shared_ptr<const CasterModel>, int,
                                               const CastOptions&, int device) {
  throw std::runtime_error("no pictures can be drawn on a GPU: " + no_batch_caster(device));
}

} // namespace troupe::env
