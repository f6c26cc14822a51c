// Small pieces that the generated functional backwards share.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <span>
#include <vector>

#include "nodes/preconditions.h"

namespace backbind {

// Whether any gradient is defined.
bool any_defined(std::span<const at::Tensor> grads);

// Moves the gradients of a list argument to their places, starting at `begin`. Fewer gradients leave the rest
// undefined; more raise ValueError.
void place_list(const char* node, std::span<at::Tensor> grad_inputs, size_t begin, size_t size,
                std::vector<at::Tensor>&& gradients);

}  // namespace backbind
