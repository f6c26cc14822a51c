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

Tensor infinitely_differentiable_silu_backward(const Tensor& grad, const Tensor& self) {
  const SkipADInplaceOrView keys;
  const Tensor sigmoid = self.sigmoid();
  return grad * sigmoid * (1.0 + self * (1.0 - sigmoid));
}

}  // namespace backbind::formulas
