#include "replay/slots.h"

#include <ATen/ops/add.h>
#include <torch/csrc/autograd/input_buffer.h>

#include "nodes/step.h"
#include "torch_private.h"

namespace backbind {

namespace {

// Whether the engine would write a sum into this part of it: nobody else has the tensor or its memory.
bool is_reused(const at::Tensor& part) {
  return part.use_count() == 1 && part.storage().use_count() == 1 && part.is_non_overlapping_and_dense();
}

// Sums two ordinary gradients below autograd's keys; returns false, and has done nothing, where one is not.
bool sum_directly(at::Tensor& here, const at::Tensor& gradient) {
  if (!is_ordinary(here) || !is_ordinary(gradient) || here.scalar_type() != gradient.scalar_type() ||
      torch_private::has_python_object(here)) {
    return false;
  }
  if (is_reused(here)) {
    const BelowAutograd keys;
    here.add_(gradient);
  } else {
    const BelowViews keys;
    here = here + gradient;
  }
  return true;
}

}  // namespace

// The engine's own buffer knows when a sum may reuse the memory of one of its parts, and how sparse gradients add up.
void Slots::sum(at::Tensor& here, at::Tensor&& gradient, torch::autograd::Node* consumer, bool is_watched) {
  if (!is_watched && sum_directly(here, gradient)) return;
  torch::autograd::InputBuffer buffer(1);
  buffer.buffer[0] = std::move(here);
  buffer.add(0, std::move(gradient), std::nullopt, std::nullopt, consumer);
  here = std::move(buffer.buffer[0]);
}

}  // namespace backbind
