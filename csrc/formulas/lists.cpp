#include <ATen/ATen.h>
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

}  // namespace backbind::formulas
