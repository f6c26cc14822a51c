#include "graph/fit.h"

namespace backbind {

using torch::autograd::InputMetadata;

namespace {

const InputMetadata& metadata_of(const Plan& plan, SlotIndex slot) {
  return plan.steps[slot.step].node->input_metadata(slot.input);
}

// The shape of a nested tensor made in C++ is a tensor, and never reduced.
bool has_plain_shape(const InputMetadata& metadata) {
  return !metadata.was_default_constructed() && !metadata.is_cpp_nested_tensor();
}

}  // namespace

Fit fit_of(const Plan& plan, SlotIndex to) {
  const InputMetadata& metadata = metadata_of(plan, to);
  return {metadata.shape_as_dim_vector().vec(), c10::typeMetaToScalarType(metadata.dtype())};
}

std::optional<Fit> fit_for(const Plan& plan, const Step& from, SlotIndex to) {
  const InputMetadata& target = metadata_of(plan, to);
  if (!has_plain_shape(target)) return std::nullopt;
  const bool single_output = from.node->num_inputs() == 1 && has_plain_shape(from.node->input_metadata(0));
  if (from.binding != nullptr && from.binding->exact_gradient && single_output &&
      from.node->input_metadata(0).dtype() == target.dtype()) {
    return std::nullopt;
  }
  return fit_of(plan, to);
}

}  // namespace backbind
