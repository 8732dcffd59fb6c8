#include "env/caster/cuda/draw_tiles.cuh"

int troupe::env::caster::launch_orthographic(const Launch& launch) {
  return launch_tiles<true>(launch);
}
