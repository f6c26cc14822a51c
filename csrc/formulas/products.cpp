#include <ATen/ATen.h>

#include "formulas/formulas.h"
#include "formulas/intermediates.h"

namespace backbind::formulas {

using at::Tensor;
using c10::Scalar;
using c10::ScalarType;

namespace {

// Whether a product with the factor is the other factor, to the bit. Of complex numbers none is: one times infinity is
// infinity and not a number.
bool is_neutral(const Scalar& factor) {
  if (factor.isComplex()) return false;
  if (factor.isBoolean()) return factor.toBool();
  if (!factor.isSymbolic()) return factor.equal(1);
  return factor.isFloatingPoint() ? factor.toSymFloat() == 1.0 : factor.toSymInt() == 1;
}

// `number - less` in floating point, real or complex: the slopes of whole numbers are real.
Scalar inexact(const Scalar& number, double less = 0.0) {
  if (number.isComplex()) return number.toComplexDouble() - less;
  return number.toDouble() - less;
}

}  // namespace

at::Tensor handle_r_to_c(ScalarType input_type, Tensor gradient) {
  if (!c10::isComplexType(input_type) && gradient.is_complex()) return at::real(gradient);
  return gradient;
}

Tensor _to_copy_backward(const Tensor& grad, const at::TensorOptions& self_options) {
  return handle_r_to_c(self_options.dtype().toScalarType(), grad).to(self_options);
}

Tensor maybe_multiply(const Tensor& tensor, const Scalar& factor) {
  if (is_neutral(factor)) return tensor;
  const SkipADInplaceOrView keys;
  return tensor * factor;
}

Tensor mul_tensor_backward(const Tensor& grad, const Tensor& other, ScalarType self_type) {
  const SkipADInplaceOrView keys;
  return handle_r_to_c(self_type, grad * conjugate(other));
}

Tensor mul_tensor_backward(const Tensor& grad, const Scalar& other, ScalarType self_type) {
  const SkipADInplaceOrView keys;
  return handle_r_to_c(self_type, grad * other.conj());
}

Tensor div_tensor_self_backward(const Tensor& grad, const Tensor& other, ScalarType self_type,
                                const std::optional<std::string_view>& rounding_mode) {
  const SkipADInplaceOrView keys;
  if (rounding_mode.has_value()) return at::zeros_like(grad, grad.options().dtype(self_type));
  return handle_r_to_c(self_type, grad / conjugate(other));
}

Tensor div_tensor_self_backward(const Tensor& grad, const Scalar& other, ScalarType self_type,
                                const std::optional<std::string_view>& rounding_mode) {
  const SkipADInplaceOrView keys;
  if (rounding_mode.has_value()) return at::zeros_like(grad, grad.options().dtype(self_type));
  return handle_r_to_c(self_type, grad / other.conj());
}

Tensor div_tensor_other_backward(const Tensor& grad, const Tensor& self, const Tensor& other,
                                 const std::optional<std::string_view>& rounding_mode) {
  const SkipADInplaceOrView keys;
  if (rounding_mode.has_value()) return at::zeros_like(grad, grad.options().dtype(other.scalar_type()));
  return handle_r_to_c(other.scalar_type(), -grad * conjugate((self / other) / other));
}

Tensor pow_backward(const Tensor& grad, const Tensor& self, const Scalar& exponent) {
  const SkipADInplaceOrView keys;
  // The zeroth power is one everywhere, also where the power below it is infinite.
  if (exponent.equal(0)) return at::zeros_like(self, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
  const Tensor slope = self.pow(inexact(exponent, /*less=*/1.0)) * inexact(exponent);
  return handle_r_to_c(self.scalar_type(), grad * conjugate(slope));
}

}  // namespace backbind::formulas
