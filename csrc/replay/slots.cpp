#include "replay/slots.h"

#include <torch/csrc/autograd/input_buffer.h>

namespace backbind {

// The engine's own buffer knows when a sum may reuse the memory of one of its parts, and how sparse gradients add up.
void Slots::sum(at::Tensor& here, at::Tensor&& gradient, torch::autograd::Node* consumer) {
  torch::autograd::InputBuffer buffer(1);
  buffer.buffer[0] = std::move(here);
  buffer.add(0, std::move(gradient), std::nullopt, std::nullopt, consumer);
  here = std::move(buffer.buffer[0]);
}

}  // namespace backbind
