#include "gradients/validate.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/util/DimVector.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

#include "nodes/autograd_keys.h"

namespace backbind {

using torch::autograd::Edge;
using torch::autograd::InputMetadata;
using torch::autograd::Node;

namespace {

// Whether dtype, layout and device of the gradient are as the engine wants them. Says no to everything but strided
// tensors.
bool has_type(const InputMetadata& metadata, const at::Tensor& gradient) {
  if (metadata.was_default_constructed() || metadata.is_nested_tensor() || metadata.is_tensor_subclass()) return false;
  const c10::TensorImpl& impl = *gradient.unsafeGetTensorImpl();
  if (impl.layout() != at::kStrided || metadata.layout() != at::kStrided) return false;
  if (impl.has_symbolic_sizes_strides() || impl.is_python_dispatch()) return false;
  const auto dtype = metadata.grad_dtype();
  return dtype.has_value() && *dtype == impl.dtype() && impl.device() == metadata.device();
}

bool has_sizes(const at::Tensor& gradient, c10::SymIntArrayRef expected) {
  const auto sizes = gradient.sizes();
  return sizes.size() == expected.size() &&
         std::equal(sizes.begin(), sizes.end(), expected.begin(), [](int64_t size, const c10::SymInt& one) {
           return !one.is_heap_allocated() && one.as_int_unchecked() == size;
         });
}

// Sums a gradient over the dimensions along which its input was broadcast, below autograd's keys. Returns false where
// it was not, or where that is not all there is to it.
bool reduce_grad(at::Tensor& gradient, c10::SymIntArrayRef expected) {
  const auto sizes = gradient.sizes();
  if (expected.empty() || sizes.size() < expected.size() || !is_plain_dense(gradient)) return false;
  const size_t leading = sizes.size() - expected.size();
  c10::DimVector shape;
  c10::DimVector summed;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < leading) {
      summed.push_back(static_cast<int64_t>(i));
      continue;
    }
    const c10::SymInt& one = expected[i - leading];
    if (one.is_heap_allocated()) return false;
    shape.push_back(one.as_int_unchecked());
    if (shape.back() == sizes[i]) continue;
    if (shape.back() != 1) return false;
    summed.push_back(static_cast<int64_t>(i));
  }
  {
    const BelowADInplaceOrView keys;
    gradient = gradient.sum(summed, /*keepdim=*/true);
  }
  if (leading > 0) {
    const BelowAutograd keys;
    gradient = gradient.view(shape);
  }
  return true;
}

// Whether every gradient is as the engine would leave it; `reduce` may make it so where its sizes are not.
template <class Gradient, class Reduce>
bool are_valid(const torch::autograd::edge_list& edges, std::span<Gradient> gradients, Reduce reduce) {
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.is_valid() || !gradients[i].defined()) continue;
    const InputMetadata& metadata = edge.function->input_metadata(edge.input_nr);
    if (!has_type(metadata, gradients[i])) return false;
    const c10::SymIntArrayRef expected = metadata.shape_as_dim_vector();
    if (!has_sizes(gradients[i], expected) && !reduce(gradients[i], expected)) return false;
  }
  return true;
}

constexpr auto kNoReduction = [](const at::Tensor&, c10::SymIntArrayRef) { return false; };

void validate_as_engine(Node& node, std::vector<at::Tensor>& gradients) {
  torch::autograd::validate_outputs(node.next_edges(), gradients, [&](const std::string& problem) {
    return "Function " + node.name() + " returned an " + problem;
  });
}

}  // namespace

void validate_grads(Node& node, std::vector<at::Tensor>& gradients) {
  if (gradients.size() != node.num_outputs() || !are_valid(node.next_edges(), std::span(gradients), kNoReduction)) {
    validate_as_engine(node, gradients);
  }
}

void validate_grads_below_autograd(Node& node, std::span<at::Tensor> gradients) {
  if (are_valid(node.next_edges(), gradients, reduce_grad)) return;
  std::vector<at::Tensor> movable(std::make_move_iterator(gradients.begin()), std::make_move_iterator(gradients.end()));
  validate_as_engine(node, movable);
  std::move(movable.begin(), movable.end(), gradients.begin());
}

bool are_valid_grads(const torch::autograd::edge_list& edges, std::span<const at::Tensor> gradients) {
  return are_valid(edges, gradients, kNoReduction);
}

at::Tensor validate_grad(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes,
                         std::optional<at::ScalarType> dtype, std::optional<at::Device> device) {
  if (!gradient.has_value() || !gradient->defined()) return at::Tensor();
  at::Tensor valid = *gradient;
  if (!valid.sym_sizes().equals(sizes)) {
    TORCH_CHECK(at::is_expandable_to(sizes, valid.sym_sizes()), "a gradient of shape ", valid.sym_sizes(),
                " cannot be reduced to the shape ", sizes, " of its value");
    valid = at::sum_to(std::move(valid), sizes);
  }
  if (dtype.has_value() && valid.scalar_type() != *dtype) valid = valid.to(*dtype);
  if (device.has_value() && valid.device() != *device && valid.dim() == 0) valid = valid.to(*device);
  return valid;
}

}  // namespace backbind
