#include "gradients/sum.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/input_buffer.h>

#include <utility>

#include "nodes/autograd_keys.h"
#include "torch_private.h"

namespace backbind {

namespace {

bool is_defined(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

// Whether the engine would write a sum into this part of it: nobody else has the tensor or its memory.
bool is_reused(const at::Tensor& part) {
  return part.use_count() == 1 && part.storage().use_count() == 1 && part.is_non_overlapping_and_dense();
}

}  // namespace

// The engine's own buffer knows when a sum may reuse the memory of one of its parts, and how sparse gradients add up.
void add_to_buffer(at::Tensor& buffer, at::Tensor&& gradient, torch::autograd::Node* consumer) {
  torch::autograd::InputBuffer buffers(1);
  buffers.buffer[0] = std::move(buffer);
  buffers.add(0, std::move(gradient), std::nullopt, std::nullopt, consumer);
  buffer = std::move(buffers.buffer[0]);
}

void add_to_buffer_below_autograd(at::Tensor& buffer, at::Tensor&& gradient, torch::autograd::Node* consumer) {
  if (!is_plain_dense(buffer) || !is_plain_dense(gradient) || buffer.scalar_type() != gradient.scalar_type() ||
      torch_private::has_python_object(buffer)) {
    add_to_buffer(buffer, std::move(gradient), consumer);
  } else if (is_reused(buffer)) {
    const BelowAutograd keys;
    buffer.add_(gradient);
  } else {
    const BelowADInplaceOrView keys;
    buffer = buffer + gradient;
  }
}

at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient) {
  if (!is_defined(total)) return gradient.value_or(at::Tensor());
  if (!is_defined(gradient)) return *total;
  // Only sparse + dense is not defined, dense + sparse is.
  return total->is_sparse() && !gradient->is_sparse() ? *gradient + *total : *total + *gradient;
}

}  // namespace backbind
