#include "env/suite/remove_parts.hpp"

#include <vector>

#include "env/suite/model_editing.hpp"

namespace troupe::env {

namespace {

void remove_element(mjSpec& spec, mjsElement* part, const std::string& name,
                    const std::string& file) {
  if (mjs_delete(&spec, part) != 0)
    throw std::runtime_error(file + ": MuJoCo cannot remove " + name + ": " + mjs_getError(&spec));
}

} // namespace

void remove_part(mjSpec& spec, mjtObj type, const std::string& name, const std::string& file) {
  remove_element(spec, required_element(spec, type, name, file), name, file);
}

void remove_sensors(mjSpec& spec, mjtSensor type, const std::string& file) {
  std::vector<mjsElement*> unwanted;
  for (mjsElement* part = mjs_firstElement(&spec, mjOBJ_SENSOR); part != nullptr;
       part = mjs_nextElement(&spec, part))
    if (mjs_asSensor(part)->type == type)
      unwanted.push_back(part);
  for (mjsElement* part : unwanted)
    remove_element(spec, part, "a sensor", file);
}

} // namespace troupe::env
