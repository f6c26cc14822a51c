#include "replay/accumulate.h"

#include <ATen/ops/add.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/utils/grad_layout_contract.h>
#include <torch/csrc/autograd/variable.h>

#include "nodes/autograd_keys.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::AccumulateGrad;
using torch::autograd::AutogradMeta;

namespace {

// Whether it is a leaf that wants a gradient, and still such a one as AccumulateGrad was made for.
bool is_plain_leaf(const at::Tensor& variable, const AutogradMeta* meta) {
  return meta != nullptr && meta->requires_grad_ && !meta->is_view_ && meta->grad_fn_ == nullptr &&
         is_plain_dense(variable);
}

// Whether nobody else will ever see it, so that the leaf can have it as its own.
bool is_ours_alone(const at::Tensor& gradient) {
  return gradient.use_count() == 1 && !torch_private::has_python_object(gradient);
}

}  // namespace

bool accumulate(torch::autograd::Node& node, at::Tensor& gradient) {
  const at::Tensor& variable = static_cast<AccumulateGrad&>(node).variable;
  if (!gradient.defined() || !variable.defined() || !is_plain_dense(gradient)) return false;
  AutogradMeta* meta = torch::autograd::impl::get_autograd_meta(variable);
  if (!is_plain_leaf(variable, meta)) return false;
  const torch_private::NodeLock lock(node);
  at::Tensor& sum = meta->grad_;
  if (!sum.defined()) {
    if (!is_ours_alone(gradient) || !torch::autograd::utils::obeys_layout_contract(gradient, variable)) return false;
    // A gradient is no view and has no history; the version that it counts stays that of its memory.
    gradient.unsafeGetTensorImpl()->set_autograd_meta(nullptr);
    sum = std::move(gradient);
    return true;
  }
  if (!is_plain_dense(sum) || !torch::autograd::utils::obeys_layout_contract(sum, variable)) return false;
  {
    const BelowAutograd keys;
    sum.add_(gradient);
  }
  gradient.reset();
  return true;
}

}  // namespace backbind
