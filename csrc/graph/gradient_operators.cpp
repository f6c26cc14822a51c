#include "graph/gradient_operators.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <c10/util/StringUtil.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <string>

namespace backbind {

namespace {

bool is_defined(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

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
  if (!is_defined(given)) {
    if (is_defined(implicit)) return *implicit;
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

at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient) {
  if (!is_defined(total)) return gradient.value_or(at::Tensor());
  if (!is_defined(gradient)) return *total;
  // Only sparse + dense is not defined, dense + sparse is.
  return total->is_sparse() && !gradient->is_sparse() ? *gradient + *total : *total + *gradient;
}

at::Tensor validate_grad(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes,
                         std::optional<at::ScalarType> dtype, std::optional<at::Device> device) {
  if (!is_defined(gradient)) return at::Tensor();
  at::Tensor valid = *gradient;
  if (!valid.sym_sizes().equals(sizes)) {
    TORCH_CHECK(at::is_expandable_to(sizes, valid.sym_sizes()), "a gradient of shape ", valid.sym_sizes(),
                " cannot be reduced to the shape ", sizes, " of its value");
    valid = at::sum_to(std::move(valid), sizes);
  }
  if (dtype.has_value() && valid.scalar_type() != *dtype) valid = valid.to(*dtype);
  if (device.has_value() && valid.device() != *device && valid.dim() == 0) valid = valid.to(*device);
  return valid;
}

void register_gradient_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed, like the operators of the nodes.
    auto* library =
        std::make_unique<torch::Library>(torch::Library::FRAGMENT, "backbind", std::nullopt, __FILE__, __LINE__)
            .release();
    const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
    library->def(
        "root_gradient(Tensor? given, Tensor? implicit, SymInt[]? sizes, ScalarType dtype, int output) -> Tensor",
        tags);
    library->def("sum_gradients(Tensor? total, Tensor? gradient) -> Tensor", tags);
    library->def("validate_grad(Tensor? gradient, SymInt[] sizes, ScalarType? dtype, Device? device=None) -> Tensor",
                 tags);
    for (const auto key :
         {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::FuncTorchBatchedDecomposition}) {
      library->impl("root_gradient", torch::dispatch(key, TORCH_FN(root_gradient)));
      library->impl("sum_gradients", torch::dispatch(key, TORCH_FN(sum_gradients)));
      library->impl("validate_grad", torch::dispatch(key, TORCH_FN(validate_grad)));
    }
  });
}

}  // namespace backbind
