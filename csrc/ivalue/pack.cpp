#include "ivalue/pack.h"

#include <ATen/core/List.h>

#include "torch_private.h"

namespace backbind {

using c10::IValue;
using torch::autograd::SavedVariable;

void PackWriter::needs_input_grad(std::initializer_list<size_t> edges) {
  c10::List<bool> needed;
  needed.reserve(edges.size());
  size_t edge = 0;
  const size_t present = node_.num_outputs();
  for (const size_t count : edges) {
    bool any = false;
    for (size_t i = 0; i < count && edge < present; ++i, ++edge) any |= edge_needed(edge);
    needed.push_back(any);
  }
  values_.emplace_back(std::move(needed));
}

bool PackWriter::edge_needed(size_t edge) const {
  return needed_ != nullptr ? (*needed_)[edge] : node_.should_compute_output(edge);
}

void PackWriter::check_not_released(bool released) const {
  TORCH_CHECK(!released, torch::autograd::ERR_BACKWARD_TWICE);
}

const at::Tensor& PackWriter::unpacked_later() {
  static const at::Tensor stand_in(
      c10::make_intrusive<c10::TensorImpl>(c10::DispatchKeySet(), caffe2::TypeMeta::Make<float>(), std::nullopt));
  return stand_in;
}

at::Tensor PackWriter::unpacked(const SavedVariable& value) {
  if (value.has_hooks() && unpack_hooks_ == UnpackHooks::kLeave) return unpacked_later();
  // A result does not know its node, which it would own in turn; an input that has none any more is an error.
  return torch_private::is_result(value) ? value.unpack(node_.getptr()) : value.unpack();
}

void PackWriter::write(const SavedVariable& value) { values_.emplace_back(unpacked(value)); }

void PackWriter::write_list(const std::vector<SavedVariable>& value, bool released) {
  check_not_released(released);
  c10::List<at::Tensor> list;
  list.reserve(value.size());
  for (const auto& saved : value) list.push_back(unpacked(saved));
  values_.emplace_back(std::move(list));
}

void PackWriter::write_optional_list(const std::vector<SavedVariable>& value, bool released) {
  check_not_released(released);
  c10::List<std::optional<at::Tensor>> list;
  list.reserve(value.size());
  for (const auto& saved : value) {
    at::Tensor tensor = unpacked(saved);
    list.push_back(tensor.defined() ? std::make_optional(std::move(tensor)) : std::nullopt);
  }
  values_.emplace_back(std::move(list));
}

}  // namespace backbind
