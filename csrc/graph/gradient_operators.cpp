#include "graph/gradient_operators.h"

#include <torch/library.h>

#include <memory>
#include <mutex>

#include "gradients/root.h"
#include "gradients/sum.h"
#include "gradients/validate.h"

namespace backbind {

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
