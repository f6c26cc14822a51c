#include "gradients/root.h"

#include <ATen/ATen.h>
#include <c10/util/StringUtil.h>

#include <string>

namespace backbind {

namespace {

std::string python_size(c10::SymIntArrayRef sizes) { return c10::str("torch.Size([", c10::Join(", ", sizes), "])"); }

std::string python_dtype(at::ScalarType dtype) { return c10::str("torch.", c10::getDtypeNames(dtype).first); }

// A gradient that nobody gave is one, for outputs of a single real number.
[[noreturn]] void refuse_implicit(at::OptionalSymIntArrayRef sizes, at::ScalarType dtype) {
  const bool is_scalar = sizes.has_value() && c10::multiply_integers(*sizes) == 1;
  TORCH_CHECK(is_scalar, "grad can be implicitly created only for scalar outputs");
  TORCH_CHECK(false, "grad can be implicitly created only for real scalar outputs but got ", python_dtype(dtype));
}

}  // namespace

at::Tensor root_gradient(const std::optional<at::Tensor>& given, const std::optional<at::Tensor>& implicit,
                         at::OptionalSymIntArrayRef sizes, at::ScalarType dtype, int64_t output) {
  if (!given.has_value() || !given->defined()) {
    if (implicit.has_value() && implicit->defined()) return *implicit;
    refuse_implicit(sizes, dtype);
  }
  TORCH_CHECK(!sizes.has_value() || given->sym_sizes().equals(*sizes), "Mismatch in shape: grad_output[", output,
              "] has a shape of ", python_size(given->sym_sizes()), " and output[", output, "] has a shape of ",
              python_size(*sizes), ".");
  TORCH_CHECK(
      given->is_complex() == at::isComplexType(dtype),
      "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
      "grad_output[",
      output, "] has a dtype of ", python_dtype(given->scalar_type()), " and output[", output, "] has a dtype of ",
      python_dtype(dtype), ".");
  return *given;
}

}  // namespace backbind
