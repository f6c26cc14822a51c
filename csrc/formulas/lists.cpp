#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/WrapDimUtils.h>

#include <algorithm>
#include <span>
#include <vector>

#include "formulas/formulas.h"
#include "formulas/intermediates.h"

namespace backbind::formulas {

using at::Tensor;

Tensor split_with_sizes_backward(std::span<const Tensor> grads, c10::SymIntArrayRef split_sizes, int64_t dim,
                                 c10::SymIntArrayRef sizes, const at::TensorOptions& options) {
  const int64_t wrapped = at::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  const SkipADInplaceOrView keys;
  std::vector<Tensor> parts(grads.begin(), grads.end());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].defined()) continue;
    std::vector<c10::SymInt> part_sizes = sizes.vec();
    part_sizes[wrapped] = split_sizes[i];
    parts[i] = at::zeros_symint(part_sizes, options);
  }
  return at::cat(parts, wrapped);
}

Tensor split_backward(std::span<const Tensor> grads, const c10::SymInt& split_size, int64_t dim,
                      c10::SymIntArrayRef sizes, const at::TensorOptions& options) {
  const c10::SymInt& whole = sizes[at::maybe_wrap_dim(dim, static_cast<int64_t>(sizes.size()))];
  std::vector<c10::SymInt> split_sizes(grads.size(), split_size);
  // The last part is what is left.
  split_sizes.back() = whole - split_size * static_cast<int64_t>(grads.size() - 1);
  return split_with_sizes_backward(grads, split_sizes, dim, sizes, options);
}

Tensor unbind_backward(std::span<const Tensor> grads, int64_t dim) {
  const auto defined = std::ranges::find_if(grads, [](const Tensor& grad) { return grad.defined(); });
  const SkipADInplaceOrView keys;
  std::vector<Tensor> parts(grads.begin(), grads.end());
  // One zero for all, seen from everywhere: stack copies it in any case.
  Tensor zero;
  for (Tensor& part : parts) {
    if (part.defined()) continue;
    if (!zero.defined()) zero = at::zeros({}, defined->options()).expand_symint(defined->sym_sizes());
    part = zero;
  }
  return at::stack(parts, dim);
}

std::vector<Tensor> cat_tensors_backward(const Tensor& grad, const std::vector<std::vector<c10::SymInt>>& sizes,
                                         const std::vector<c10::ScalarType>& dtypes, int64_t dim) {
  std::vector<Tensor> parts(sizes.size());
  if (!grad.defined()) return parts;
  const int64_t wrapped = at::maybe_wrap_dim(dim, grad.dim());
  c10::SymInt begin = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor typed = handle_r_to_c(dtypes[i], grad);
    if (sizes[i].size() == 1 && sizes[i][0] == 0) {
      // cat leaves an empty vector out, however many dimensions the others have.
      parts[i] = at::zeros({0}, typed.options());
      continue;
    }
    const c10::SymInt& length = sizes[i][wrapped];
    parts[i] = typed.narrow_symint(wrapped, begin, length);
    begin += length;
  }
  return parts;
}

std::vector<Tensor> stack_tensors_backward(const Tensor& grad, int64_t dim,
                                           const std::vector<c10::ScalarType>& dtypes) {
  std::vector<Tensor> parts(dtypes.size());
  if (!grad.defined()) return parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i] = handle_r_to_c(dtypes[i], grad.select(dim, static_cast<int64_t>(i)));
  }
  return parts;
}

Tensor index_backward(const Tensor& zeros, const c10::List<std::optional<Tensor>>& indices, const Tensor& grad) {
  // A tensor that stands for others, as a batch does, may hold fewer numbers than what would be written to it.
  if (at::areAnyTensorSubclassLike({zeros, grad}) || at::areAnyOptionalTensorSubclassLike(indices))
    return zeros.index_put(indices, grad, /*accumulate=*/true);
  return at::_index_put_impl_(const_cast<Tensor&>(zeros), indices, grad, /*accumulate=*/true, /*unsafe=*/true);
}

}  // namespace backbind::formulas
