#include "ivalue/pack.h"

#include <ATen/core/List.h>

namespace backbind {

using c10::IValue;
using torch::autograd::SavedVariable;

namespace {

template <class T>
IValue optional_ivalue(const std::optional<T>& value) {
  return value.has_value() ? IValue(*value) : IValue();
}

IValue lengths_of(const auto& lists) {
  std::vector<int64_t> lengths;
  lengths.reserve(lists.size());
  for (const auto& list : lists) lengths.push_back(static_cast<int64_t>(list.size()));
  return IValue(std::move(lengths));
}

template <class T>
std::vector<T> flattened(const std::vector<std::vector<T>>& lists) {
  std::vector<T> flat;
  for (const auto& list : lists) flat.insert(flat.end(), list.begin(), list.end());
  return flat;
}

IValue sym_int_list_ivalue(c10::SymIntArrayRef value) { return IValue(value); }

}  // namespace

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

at::Tensor PackWriter::unpacked(const SavedVariable& value) {
  has_unpack_hooks_ |= value.has_hooks();
  if (value.has_hooks() && unpack_hooks_ == UnpackHooks::kLeave) return {};
  return value.unpack(node_.getptr());
}

void PackWriter::tensor(const SavedVariable& value) { values_.emplace_back(unpacked(value)); }

void PackWriter::tensor_list(const std::vector<SavedVariable>& value, bool released) {
  check_not_released(released);
  c10::List<at::Tensor> list;
  list.reserve(value.size());
  for (const auto& saved : value) list.push_back(unpacked(saved));
  values_.emplace_back(std::move(list));
}

void PackWriter::optional_tensor_list(const std::vector<SavedVariable>& value, bool released) {
  check_not_released(released);
  c10::List<std::optional<at::Tensor>> list;
  list.reserve(value.size());
  for (const auto& saved : value) {
    at::Tensor tensor = unpacked(saved);
    list.push_back(tensor.defined() ? std::make_optional(std::move(tensor)) : std::nullopt);
  }
  values_.emplace_back(std::move(list));
}

void PackWriter::boolean(bool value) { values_.emplace_back(value); }
void PackWriter::optional_boolean(std::optional<bool> value) { values_.push_back(optional_ivalue(value)); }
void PackWriter::integer(int64_t value) { values_.emplace_back(value); }
void PackWriter::optional_integer(std::optional<int64_t> value) { values_.push_back(optional_ivalue(value)); }
void PackWriter::list_size(size_t value) { values_.emplace_back(static_cast<int64_t>(value)); }
void PackWriter::integer_list(const std::vector<int64_t>& value) { values_.emplace_back(value); }
void PackWriter::optional_integer_list(const c10::OptionalArray<int64_t>& value) {
  values_.push_back(optional_ivalue(value.list));
}
void PackWriter::sym_int(const c10::SymInt& value) { values_.emplace_back(value); }
void PackWriter::optional_sym_int(const std::optional<c10::SymInt>& value) {
  values_.push_back(optional_ivalue(value));
}
void PackWriter::sym_int_list(const std::vector<c10::SymInt>& value) { values_.push_back(sym_int_list_ivalue(value)); }
void PackWriter::optional_sym_int_list(const c10::OptionalArray<c10::SymInt>& value) {
  values_.push_back(value.list.has_value() ? sym_int_list_ivalue(*value.list) : IValue());
}
void PackWriter::floating(double value) { values_.emplace_back(value); }
void PackWriter::optional_floating(std::optional<double> value) { values_.push_back(optional_ivalue(value)); }
void PackWriter::scalar(const at::Scalar& value) { values_.emplace_back(value); }
void PackWriter::optional_scalar(const std::optional<at::Scalar>& value) { values_.push_back(optional_ivalue(value)); }

void PackWriter::scalar_list(const std::vector<at::Scalar>& value) {
  // torch empties the list when it releases it and raises no flag; no forward that made a node took an empty one.
  check_not_released(value.empty());
  c10::impl::GenericList list(c10::NumberType::get());
  list.reserve(value.size());
  for (const auto& scalar : value) list.push_back(IValue(scalar));
  values_.emplace_back(std::move(list));
}

void PackWriter::scalar_type(at::ScalarType value) { values_.emplace_back(value); }

void PackWriter::scalar_type_list(const std::vector<at::ScalarType>& value) {
  std::vector<int64_t> numbers;
  numbers.reserve(value.size());
  for (const auto type : value) numbers.push_back(static_cast<int64_t>(type));
  values_.emplace_back(std::move(numbers));
}

void PackWriter::layout(at::Layout value) { values_.emplace_back(value); }
void PackWriter::string(const std::string& value) { values_.emplace_back(value); }
void PackWriter::optional_string(const std::optional<std::string>& value) { values_.push_back(optional_ivalue(value)); }

void PackWriter::tensor_options(const at::TensorOptions& value) {
  values_.push_back(optional_ivalue(c10::optTypeMetaToScalarType(value.dtype_opt())));
  values_.push_back(optional_ivalue(value.layout_opt()));
  values_.push_back(optional_ivalue(value.device_opt()));
  values_.push_back(optional_ivalue(value.pinned_memory_opt()));
}

void PackWriter::type_and_size(const torch::autograd::TypeAndSize& value) {
  sym_int_list(value.sym_sizes);
  tensor_options(value.options);
}

void PackWriter::tensor_geometry(const at::TensorGeometry& value) {
  values_.push_back(sym_int_list_ivalue(value.sym_sizes()));
  values_.push_back(sym_int_list_ivalue(value.sym_strides()));
  values_.emplace_back(value.sym_storage_offset());
}

void PackWriter::integer_lists(const std::vector<std::vector<int64_t>>& value) {
  values_.emplace_back(flattened(value));
  values_.push_back(lengths_of(value));
}

void PackWriter::sym_int_lists(const std::vector<std::vector<c10::SymInt>>& value) {
  values_.push_back(sym_int_list_ivalue(flattened(value)));
  values_.push_back(lengths_of(value));
}

}  // namespace backbind
