# Tests of the caster's textures, meshes, skins and height fields.
foreach(name IN ITEMS shapes_field shapes_mesh shapes_texture)
  troupe_test(${name}_test LABEL unit USES troupe::env)
  target_sources(${name}_test PRIVATE shapes_kernels.cpp)
  target_link_libraries(${name}_test PRIVATE hwy::hwy)
  target_compile_options(${name}_test PRIVATE -ffp-contract=off)
  target_compile_definitions(${name}_test PRIVATE HWY_WANT_AVX3_DL)
endforeach()
