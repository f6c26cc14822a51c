#include "nodes/step_inputs.h"

#include <algorithm>

#include "nodes/autograd_keys.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::SavedVariable;

namespace {

// Calls `visit` with each tensor; false where it stopped at one that a step cannot use.
template <class Visit>
bool visit_plain_dense(const std::vector<SavedVariable>& saved, bool is_released, Visit visit) {
  if (is_released) return false;
  for (const SavedVariable& one : saved) {
    const at::Tensor* tensor = torch_private::saved_tensor(one);
    if (!are_plain_dense({tensor})) return false;
    visit(*tensor);
  }
  return true;
}

}  // namespace

bool EdgeFlags::list(size_t size) {
  const auto own = rest_.first(size);
  rest_ = rest_.subspan(size);
  return std::ranges::any_of(own, [](uint8_t flag) { return flag != 0; });
}

std::optional<std::vector<at::Tensor>> saved_tensor_list(const std::vector<SavedVariable>& saved, bool is_released) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(saved.size());
  if (!visit_plain_dense(saved, is_released, [&](const at::Tensor& one) { tensors.push_back(one); }))
    return std::nullopt;
  return tensors;
}

std::optional<c10::List<std::optional<at::Tensor>>> saved_optional_tensor_list(const std::vector<SavedVariable>& saved,
                                                                               bool is_released) {
  c10::List<std::optional<at::Tensor>> tensors;
  tensors.reserve(saved.size());
  const auto push = [&](const at::Tensor& one) {
    tensors.push_back(one.defined() ? std::make_optional(one) : std::nullopt);
  };
  if (!visit_plain_dense(saved, is_released, push)) return std::nullopt;
  return tensors;
}

}  // namespace backbind
