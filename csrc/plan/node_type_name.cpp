#include "plan/node_type_name.h"

#include <c10/util/Type.h>

namespace backbind {

std::string node_type_name(const std::type_info& type) {
  const std::string name = c10::demangle(type.name());
  if (name == "torch::autograd::PyNode") return "torch.autograd.Function";
  // The namespaces of the type itself, not of its template arguments.
  const size_t last = name.rfind("::", name.find('<'));
  return last == std::string::npos ? name : name.substr(last + 2);
}

}  // namespace backbind
