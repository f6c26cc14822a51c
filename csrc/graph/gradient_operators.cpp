#include "graph/gradient_operators.h"

#include <ATen/ATen.h>
#include <ATen/ExpandUtils.h>
#include <torch/library.h>

#include <memory>
#include <mutex>

namespace backbind {

namespace {

bool is_defined(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }

}  // namespace

at::Tensor root_gradient(const std::optional<at::Tensor>& given, const at::Tensor& implicit) {
  return is_defined(given) ? *given : implicit;
}

at::Tensor sum_gradients(const std::optional<at::Tensor>& total, const std::optional<at::Tensor>& gradient) {
  if (!is_defined(total)) return gradient.value_or(at::Tensor());
  if (!is_defined(gradient)) return *total;
  // Only sparse + dense is not defined, dense + sparse is.
  return total->is_sparse() && !gradient->is_sparse() ? *gradient + *total : *total + *gradient;
}

at::Tensor fit_gradient(const std::optional<at::Tensor>& gradient, c10::SymIntArrayRef sizes, at::ScalarType dtype) {
  if (!is_defined(gradient)) return at::Tensor();
  at::Tensor fitted = *gradient;
  if (!fitted.sym_sizes().equals(sizes)) {
    TORCH_CHECK(at::is_expandable_to(sizes, fitted.sym_sizes()), "a gradient of shape ", fitted.sym_sizes(),
                " cannot be reduced to the shape ", sizes, " of its value");
    fitted = at::sum_to(std::move(fitted), sizes);
  }
  return fitted.scalar_type() == dtype ? fitted : fitted.to(dtype);
}

void register_gradient_operators() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Never destroyed, like the operators of the nodes.
    auto* library =
        std::make_unique<torch::Library>(torch::Library::FRAGMENT, "backbind", std::nullopt, __FILE__, __LINE__)
            .release();
    library->def("root_gradient(Tensor? given, Tensor implicit) -> Tensor", {at::Tag::pt2_compliant_tag});
    library->def("sum_gradients(Tensor? total, Tensor? gradient) -> Tensor", {at::Tag::pt2_compliant_tag});
    library->def("fit_gradient(Tensor? gradient, SymInt[] sizes, ScalarType dtype) -> Tensor",
                 {at::Tag::pt2_compliant_tag});
    for (const auto key :
         {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::FuncTorchBatchedDecomposition}) {
      library->impl("root_gradient", torch::dispatch(key, TORCH_FN(root_gradient)));
      library->impl("sum_gradients", torch::dispatch(key, TORCH_FN(sum_gradients)));
      library->impl("fit_gradient", torch::dispatch(key, TORCH_FN(fit_gradient)));
    }
  });
}

}  // namespace backbind
