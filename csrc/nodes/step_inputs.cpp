#include "nodes/step_inputs.h"

#include <algorithm>

#include "nodes/autograd_keys.h"
#include "torch_private.h"

namespace backbind {

using torch::autograd::SavedVariable;

namespace {

void push(std::vector<at::Tensor>& list, const at::Tensor& one) { list.push_back(one); }
void push(c10::List<std::optional<at::Tensor>>& list, const at::Tensor& one) {
  list.push_back(one.defined() ? std::make_optional(one) : std::nullopt);
}

}  // namespace

bool EdgeFlags::list(size_t size) {
  const auto own = rest_.first(size);
  rest_ = rest_.subspan(size);
  return std::ranges::any_of(own, [](uint8_t flag) { return flag != 0; });
}

template <class List>
std::optional<List> saved_list(const std::vector<SavedVariable>& saved, bool is_released) {
  if (is_released) return std::nullopt;
  List tensors;
  tensors.reserve(saved.size());
  for (const SavedVariable& one : saved) {
    const at::Tensor* tensor = torch_private::saved_tensor(one);
    if (!are_plain_dense({tensor})) return std::nullopt;
    push(tensors, *tensor);
  }
  return tensors;
}

template std::optional<std::vector<at::Tensor>> saved_list(const std::vector<SavedVariable>& saved, bool is_released);
template std::optional<c10::List<std::optional<at::Tensor>>> saved_list(const std::vector<SavedVariable>& saved,
                                                                        bool is_released);

}  // namespace backbind
