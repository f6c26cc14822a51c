#include "ivalue/unpack.h"

#include <c10/util/Exception.h>

#include <utility>

namespace backbind {

using c10::IValue;

namespace {

// Far above any real list of tensors, far below what would exhaust memory before it can be refused.
constexpr int64_t kLargestList = int64_t{1} << 24;

template <class T>
std::vector<std::vector<T>> split(const char* node, std::vector<T> flat, const std::vector<int64_t>& lengths) {
  std::vector<std::vector<T>> lists;
  lists.reserve(lengths.size());
  auto next = std::make_move_iterator(flat.begin());
  int64_t left = static_cast<int64_t>(flat.size());
  for (const int64_t length : lengths) {
    TORCH_CHECK_VALUE(length >= 0 && length <= left, node, ": the lengths of nested lists must be non-negative and add",
                      " up to the number of values (", flat.size(), ")");
    lists.emplace_back(next, next + length);
    next += length;
    left -= length;
  }
  TORCH_CHECK_VALUE(left == 0, node, ": the lengths of nested lists must add up to the number of values (", flat.size(),
                    "), ", left, " values are left over");
  return lists;
}

}  // namespace

ArgumentReader::ArgumentReader(const char* node, const std::vector<IValue>& values, size_t expected)
    : node_(node), next_(values.data()) {
  TORCH_CHECK_TYPE(values.size() == expected, node, ": expected needs_input_grad and ", expected - 1,
                   " saved values, got ", values.size(), " arguments");
}

void ArgumentReader::read_mask(bool* needed, size_t count) {
  const IValue& value = next();
  if (value.isInt()) {
    const auto flags = static_cast<uint64_t>(value.toInt());
    for (size_t i = 0; i < count; ++i) needed[i] = ((flags >> i) & 1U) != 0;
    return;
  }
  const auto mask = value.toBoolList();
  TORCH_CHECK_VALUE(mask.size() == count, node_, ": needs_input_grad must have one flag for each of the ", count,
                    " differentiable inputs, got ", mask.size());
  for (size_t i = 0; i < count; ++i) needed[i] = mask.get(i);
}

at::Tensor ArgumentReader::tensor() {
  const IValue& value = next();
  return value.isNone() ? at::Tensor() : value.toTensor();
}

std::vector<at::Tensor> ArgumentReader::tensor_list() { return next().toTensorVector(); }

c10::List<std::optional<at::Tensor>> ArgumentReader::optional_tensor_list() {
  const IValue& value = next();
  c10::List<std::optional<at::Tensor>> list;
  for (const IValue& element : value.toListRef()) {
    const bool defined = !element.isNone() && element.toTensor().defined();
    list.push_back(defined ? std::make_optional(element.toTensor()) : std::nullopt);
  }
  return list;
}

bool ArgumentReader::boolean() { return next().toBool(); }
std::optional<bool> ArgumentReader::optional_boolean() { return next().toOptional<bool>(); }
int64_t ArgumentReader::integer() { return next().toInt(); }
std::optional<int64_t> ArgumentReader::optional_integer() { return next().toOptional<int64_t>(); }

size_t ArgumentReader::list_size() {
  const int64_t size = next().toInt();
  TORCH_CHECK_VALUE(size >= 0 && size <= kLargestList, node_, ": a list size must lie between 0 and ", kLargestList,
                    ", got ", size);
  return static_cast<size_t>(size);
}

std::vector<int64_t> ArgumentReader::integer_list() { return next().toIntVector(); }

c10::OptionalArray<int64_t> ArgumentReader::optional_integer_list() {
  const IValue& value = next();
  c10::OptionalArray<int64_t> array;
  if (!value.isNone()) array.list = value.toIntVector();
  return array;
}

c10::SymInt ArgumentReader::sym_int() { return next().toSymInt(); }

std::optional<c10::SymInt> ArgumentReader::optional_sym_int() {
  const IValue& value = next();
  return value.isNone() ? std::nullopt : std::make_optional(value.toSymInt());
}

std::vector<c10::SymInt> ArgumentReader::sym_int_list() { return next().toSymIntVector(); }

c10::OptionalArray<c10::SymInt> ArgumentReader::optional_sym_int_list() {
  const IValue& value = next();
  c10::OptionalArray<c10::SymInt> array;
  if (!value.isNone()) array.list = value.toSymIntVector();
  return array;
}

double ArgumentReader::floating() { return next().toDouble(); }
std::optional<double> ArgumentReader::optional_floating() { return next().toOptional<double>(); }
at::Scalar ArgumentReader::scalar() { return next().toScalar(); }

std::optional<at::Scalar> ArgumentReader::optional_scalar() {
  const IValue& value = next();
  return value.isNone() ? std::nullopt : std::make_optional(value.toScalar());
}

std::vector<at::Scalar> ArgumentReader::scalar_list() {
  std::vector<at::Scalar> scalars;
  const IValue& value = next();
  const auto list = value.toList();  // a list of ints or floats is held unboxed, so elements are read one by one
  scalars.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) scalars.push_back(list.get(i).toScalar());
  return scalars;
}

at::ScalarType ArgumentReader::checked_scalar_type(int64_t number) const {
  TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(at::ScalarType::NumOptions) &&
                        number != static_cast<int64_t>(at::ScalarType::Undefined),
                    node_, ": ", number, " is not the number of a dtype");
  return static_cast<at::ScalarType>(number);
}

at::Layout ArgumentReader::checked_layout(int64_t number) const {
  TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(at::Layout::NumOptions), node_, ": ", number,
                    " is not the number of a layout");
  return static_cast<at::Layout>(number);
}

at::ScalarType ArgumentReader::scalar_type() { return checked_scalar_type(next().toInt()); }

std::vector<at::ScalarType> ArgumentReader::scalar_type_list() {
  std::vector<at::ScalarType> types;
  const auto list = next().toList();  // of ints, or of anything where it came from Python through the dispatcher
  types.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) types.push_back(checked_scalar_type(list.get(i).toInt()));
  return types;
}

at::Layout ArgumentReader::layout() { return checked_layout(next().toInt()); }
std::string ArgumentReader::string() { return next().toStringRef(); }

std::optional<std::string> ArgumentReader::optional_string() {
  const IValue& value = next();
  return value.isNone() ? std::nullopt : std::make_optional(value.toStringRef());
}

at::TensorOptions ArgumentReader::tensor_options() {
  at::TensorOptions options;
  if (const IValue& dtype = next(); !dtype.isNone()) options = options.dtype(checked_scalar_type(dtype.toInt()));
  if (const IValue& layout = next(); !layout.isNone()) options = options.layout(checked_layout(layout.toInt()));
  if (const IValue& device = next(); !device.isNone()) options = options.device(device.toDevice());
  if (const IValue& pinned = next(); !pinned.isNone()) options = options.pinned_memory(pinned.toBool());
  return options;
}

torch::autograd::TypeAndSize ArgumentReader::type_and_size() {
  torch::autograd::TypeAndSize value;
  value.sym_sizes = sym_int_list();
  value.options = tensor_options();
  return value;
}

at::TensorGeometry ArgumentReader::tensor_geometry() {
  auto sizes = sym_int_list();
  auto strides = sym_int_list();
  TORCH_CHECK_VALUE(sizes.size() == strides.size(), node_, ": a geometry needs as many strides as sizes, got ",
                    strides.size(), " and ", sizes.size());
  return at::TensorGeometry(std::move(sizes), std::move(strides), sym_int());
}

std::vector<std::vector<int64_t>> ArgumentReader::integer_lists() {
  auto flat = integer_list();
  return split(node_, std::move(flat), integer_list());
}

std::vector<std::vector<c10::SymInt>> ArgumentReader::sym_int_lists() {
  auto flat = sym_int_list();
  return split(node_, std::move(flat), integer_list());
}

}  // namespace backbind
