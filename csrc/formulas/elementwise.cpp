#include <ATen/ATen.h>

#include <optional>

#include "formulas/formulas.h"
#include "formulas/intermediates.h"

namespace backbind::formulas {

using at::Tensor;
using c10::Scalar;

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const std::optional<Scalar>& min,
                      const std::optional<Scalar>& max) {
  if (!min.has_value() && !max.has_value()) return grad;
  const SkipADInplaceOrView keys;
  const Tensor zero = at::scalar_tensor(0., grad.options());
  if (!max.has_value()) return at::where(self >= *min, grad, zero);
  if (!min.has_value()) return at::where(self <= *max, grad, zero);
  return at::where((self >= *min).logical_and_(self <= *max), grad, zero);
}

Tensor clamp_backward(const Tensor& grad, const Tensor& self, const Tensor& min, const Tensor& max) {
  if (!grad.defined() || (!min.defined() && !max.defined())) return grad;
  const SkipADInplaceOrView keys;
  const Tensor zero = at::scalar_tensor(0., grad.options());
  if (!max.defined()) return at::where(self >= min, grad, zero);
  if (!min.defined()) return at::where(self <= max, grad, zero);
  return at::where(at::logical_and(self >= min, self <= max), grad, zero);
}

std::tuple<Tensor, Tensor> clamp_backward_min_max(const Tensor& grad, const Tensor& self, const Tensor& min,
                                                  const Tensor& max, const std::array<bool, 2>& grad_input_mask) {
  std::tuple<Tensor, Tensor> gradients;
  if (!grad.defined()) return gradients;
  auto& [of_min, of_max] = gradients;
  const SkipADInplaceOrView keys;
  const Tensor zero = at::scalar_tensor(0., grad.options());
  // Where the bounds contradict each other, the result is max.
  if (min.defined() && grad_input_mask[0]) {
    const Tensor below = self < min;
    of_min = at::where(max.defined() ? at::logical_and(min < max, below) : below, grad, zero);
  }
  if (max.defined() && grad_input_mask[1]) {
    const Tensor above = self > max;
    of_max = at::where(min.defined() ? at::logical_or(max < min, above) : above, grad, zero);
  }
  return gradients;
}

Tensor infinitely_differentiable_silu_backward(const Tensor& grad, const Tensor& self) {
  const SkipADInplaceOrView keys;
  const Tensor sigmoid = self.sigmoid();
  return grad * sigmoid * (1.0 + self * (1.0 - sigmoid));
}

}  // namespace backbind::formulas
