#include "replay/fit.h"

#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::InputMetadata;
using torch::autograd::Node;

namespace {

// Whether the engine would leave the gradient as it is. Says no to everything out of the ordinary.
bool fits(const InputMetadata& metadata, const at::Tensor& gradient) {
  if (metadata.was_default_constructed() || metadata.is_nested_tensor() || metadata.is_tensor_subclass()) return false;
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  if (impl.layout() != at::kStrided || metadata.layout() != at::kStrided) return false;
  if (impl.has_symbolic_sizes_strides() || impl.is_python_dispatch()) return false;
  const auto sizes = impl.sizes();
  const auto expected = metadata.shape_as_dim_vector();
  if (sizes.size() != expected.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (expected[i].is_heap_allocated() || expected[i].as_int_unchecked() != sizes[i]) return false;
  }
  const auto dtype = metadata.grad_dtype();
  return dtype.has_value() && *dtype == impl.dtype() && impl.device() == metadata.device();
}

bool all_fit(const Node& node, std::span<const at::Tensor> gradients) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Edge& edge = node.next_edge(i);
    if (!edge.is_valid() || !gradients[i].defined()) continue;
    if (!fits(edge.function->input_metadata(edge.input_nr), gradients[i])) return false;
  }
  return true;
}

void make_fit(Node& node, std::vector<at::Tensor>& gradients) {
  torch::autograd::validate_outputs(node.next_edges(), gradients, [&](const std::string& problem) {
    return "Function " + node.name() + " returned an " + problem;
  });
}

}  // namespace

void fit_gradients(Node& node, std::vector<at::Tensor>& gradients) {
  if (gradients.size() != node.num_outputs() || !all_fit(node, gradients)) make_fit(node, gradients);
}

void fit_gradients(Node& node, std::span<at::Tensor> gradients) {
  if (all_fit(node, gradients)) return;
  std::vector<at::Tensor> movable(std::make_move_iterator(gradients.begin()), std::make_move_iterator(gradients.end()));
  make_fit(node, movable);
  std::move(movable.begin(), movable.end(), gradients.begin());
}

}  // namespace backbind
