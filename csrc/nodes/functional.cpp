#include "nodes/functional.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

namespace backbind {

bool any_defined(std::span<const at::Tensor> grads) {
  return std::any_of(grads.begin(), grads.end(), [](const at::Tensor& grad) { return grad.defined(); });
}

void place_list(const char* node, std::span<at::Tensor> grad_inputs, size_t begin, size_t size,
                std::vector<at::Tensor>&& gradients) {
  TORCH_CHECK_VALUE(gradients.size() <= size, node, ": the formula gave ", gradients.size(),
                    " gradients for a list of ", size);
  std::move(gradients.begin(), gradients.end(), grad_inputs.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace backbind
