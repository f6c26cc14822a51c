#include "nodes/functional.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace backbind {

bool any_defined(const variable_list& grads) {
  return std::any_of(grads.begin(), grads.end(), [](const at::Tensor& grad) { return grad.defined(); });
}

void place_list(const char* node, variable_list& grad_inputs, size_t begin, size_t size,
                std::vector<at::Tensor>&& gradients) {
  TORCH_CHECK_VALUE(gradients.size() <= size, node, ": the formula gave ", gradients.size(),
                    " gradients for a list of ", size);
  std::move(gradients.begin(), gradients.end(), grad_inputs.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace backbind
