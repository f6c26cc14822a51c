#include <ATen/ATen.h>
#include <ATen/WrapDimUtilsMulti.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "formulas/formulas.h"
#include "formulas/intermediates.h"

namespace backbind::formulas {

using at::Tensor;

namespace {

// With a dimension of size one wherever `is_missing` says so of a place among `count` dimensions.
template <class IsMissing>
Tensor unsqueeze_where(Tensor tensor, size_t count, IsMissing is_missing) {
  for (size_t i = 0; i < count; ++i) {
    if (is_missing(i)) tensor = tensor.unsqueeze(static_cast<int64_t>(i));
  }
  return tensor;
}

}  // namespace

Tensor permute_backwards(const Tensor& grad, at::IntArrayRef dims) {
  const auto count = static_cast<int64_t>(dims.size());
  std::vector<int64_t> inverse(dims.size());
  for (int64_t i = 0; i < count; ++i) inverse[at::maybe_wrap_dim(dims[i], count)] = i;
  return grad.permute(inverse);
}

Tensor unsqueeze_to(const Tensor& grad, c10::SymIntArrayRef sizes) {
  return unsqueeze_where(grad, sizes.size(), [&](size_t i) { return sizes[i] == 1; });
}

Tensor unsqueeze_to(const Tensor& grad, int64_t dim, c10::SymIntArrayRef sizes) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  // A number has one dimension to squeeze, which it does not have.
  return !sizes.empty() && sizes[wrapped] == 1 ? grad.unsqueeze(wrapped) : grad;
}

Tensor unsqueeze_to(const Tensor& grad, at::IntArrayRef dims, c10::SymIntArrayRef sizes) {
  const auto named = at::dim_list_to_bitset(dims, sizes.size());
  return unsqueeze_where(grad, sizes.size(), [&](size_t i) { return named[i] && sizes[i] == 1; });
}

Tensor mean_backward(const Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims,
                     const c10::SymInt& numel, bool keepdim) {
  c10::SymInt count = numel;
  if (dims.has_value() && !dims->empty() && !sizes.empty()) {
    count = 1;
    for (const int64_t dim : *dims) count *= sizes[at::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()))];
  }
  const Tensor spread = sum_backward(grad, sizes, dims, keepdim);
  const SkipADInplaceOrView keys;
  return spread / count;
}

Tensor slice_backward_wrapper(const Tensor& grad, c10::SymIntArrayRef sizes, int64_t dim,
                              const std::optional<c10::SymInt>& start, const std::optional<c10::SymInt>& end,
                              const c10::SymInt& step) {
  return at::slice_backward_symint(grad, sizes, dim, start.value_or(0), end.value_or(INT64_MAX), step);
}

Tensor constant_pad_nd_backward(const Tensor& grad, c10::SymIntArrayRef pad) {
  std::vector<c10::SymInt> removed;
  removed.reserve(pad.size());
  for (const c10::SymInt& one : pad) removed.push_back(-one);
  return at::constant_pad_nd_symint(grad, removed, 0);
}

Tensor sum_backward(const Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims, bool keepdim) {
  if (keepdim || sizes.empty() || !dims.has_value() || dims->empty()) return grad.expand_symint(sizes);
  if (dims->size() == 1) return grad.unsqueeze(dims->front()).expand_symint(sizes);
  const auto summed = at::dim_list_to_bitset(*dims, sizes.size());
  return unsqueeze_where(grad, sizes.size(), [&](size_t i) { return summed[i]; }).expand_symint(sizes);
}

}  // namespace backbind::formulas
