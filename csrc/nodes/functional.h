// Small pieces that the generated functional backwards share.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace backbind {

using torch::autograd::variable_list;

// Raises ValueError unless `grads` has `expected` elements.
void check_gradient_count(const char* node, const variable_list& grads, size_t expected);

// Raises ValueError unless the list argument `name` has `expected` elements.
void check_list_length(const char* node, const char* name, size_t length, size_t expected);

// Whether any gradient is defined.
bool any_defined(const variable_list& grads);

// Moves the gradients of a list argument to their places, starting at `begin`. Fewer gradients leave the rest
// undefined; more raise ValueError.
void place_list(const char* node, variable_list& grad_inputs, size_t begin, size_t size,
                std::vector<at::Tensor>&& gradients);

}  // namespace backbind
