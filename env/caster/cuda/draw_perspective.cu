#include "env/caster/cuda/draw_tiles.cuh"

int troupe::env::caster::launch_perspective(const Launch& launch) {
  return launch_tiles<false>(launch);
}
