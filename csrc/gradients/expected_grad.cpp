#include "gradients/expected_grad.h"

namespace backbind {

using torch::autograd::InputMetadata;
using torch::autograd::Node;

namespace {

// Whether the gradients that come into `source`, and so those that it computes, lie on another device.
bool comes_from_elsewhere(const InputMetadata& metadata, const Node* source) {
  if (source == nullptr || source->num_inputs() == 0) return false;
  const InputMetadata& incoming = source->input_metadata(0);
  return !incoming.was_default_constructed() && incoming.device() != metadata.device();
}

}  // namespace

std::optional<ExpectedGrad> expected_grad(const InputMetadata& metadata, const Node* source) {
  if (metadata.was_default_constructed() || metadata.is_cpp_nested_tensor()) return std::nullopt;
  const c10::SymIntArrayRef sizes = metadata.shape_as_dim_vector();
  ExpectedGrad expected{.sizes = sizes.vec(), .dtype = metadata.grad_dtype(), .device = std::nullopt};
  if (sizes.empty() && comes_from_elsewhere(metadata, source)) expected.device = metadata.device();
  return expected;
}

}  // namespace backbind
