#include "experiments/report/video_module.hpp"

#include "experiments/report/video_parts.hpp"

extern "C" __attribute__((visibility("default")))
const troupe::experiments::VideoModule troupe_video_module{
    troupe::experiments::VideoModule::kVersion, troupe::experiments::video::write,
    troupe::experiments::video::read};
