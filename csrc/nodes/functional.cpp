#include "nodes/functional.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace backbind {

void check_gradient_count(const char* node, const variable_list& grads, size_t expected) {
  TORCH_CHECK_VALUE(grads.size() == expected, node, ": grads must have ", expected, " element",
                    expected == 1 ? "" : "s", " (None for an undefined gradient), got ", grads.size());
}

void check_list_length(const char* node, const char* name, size_t length, size_t expected) {
  TORCH_CHECK_VALUE(length == expected, node, ": '", name, "' must have ", expected, " element",
                    expected == 1 ? "" : "s", ", got ", length);
}

bool any_defined(const variable_list& grads) {
  return std::any_of(grads.begin(), grads.end(), [](const at::Tensor& grad) { return grad.defined(); });
}

void place_list(const char* node, variable_list& grad_inputs, size_t begin, size_t size,
                std::vector<at::Tensor>&& gradients) {
  TORCH_CHECK_VALUE(gradients.size() <= size, node, ": the formula gave ", gradients.size(), " gradients for a list of ",
                    size);
  std::move(gradients.begin(), gradients.end(), grad_inputs.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace backbind
