#include "graph/fit.h"

namespace backbind {

using torch::autograd::InputMetadata;

namespace {

// The shape of a nested tensor made in C++ is a tensor, and never reduced.
bool has_plain_shape(const InputMetadata& metadata) {
  return !metadata.was_default_constructed() && !metadata.is_cpp_nested_tensor();
}

}  // namespace

std::optional<Fit> fit_for(const Walk& walk, size_t from, const Target& to) {
  const torch::autograd::Node& source = *walk.nodes[from];
  const Binding* binding = walk.plan.steps[from].binding;
  const InputMetadata& target = walk.nodes[to.step]->input_metadata(to.input);
  if (!has_plain_shape(target)) return std::nullopt;
  const bool single_output = source.num_inputs() == 1 && has_plain_shape(source.input_metadata(0));
  if (binding != nullptr && binding->exact_gradient && single_output &&
      source.input_metadata(0).dtype() == target.dtype()) {
    return std::nullopt;
  }
  return Fit{target.shape_as_dim_vector().vec(), c10::typeMetaToScalarType(target.dtype())};
}

}  // namespace backbind
