#include <ATen/ATen.h>

#include <algorithm>
#include <initializer_list>

#include "formulas/formulas.h"
#include "formulas/intermediates.h"

namespace backbind::formulas {

using at::Tensor;

namespace {

bool is_column_major(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides) {
  return strides[0] == 1 && strides[1] == sizes[0];
}

bool are_strided(std::initializer_list<c10::Layout> layouts) {
  return std::ranges::all_of(layouts, [](c10::Layout layout) { return layout == c10::kStrided; });
}

}  // namespace

Tensor mm_mat1_backward(const Tensor& grad, const Tensor& mat2, c10::SymIntArrayRef mat1_sizes,
                        c10::SymIntArrayRef mat1_strides, c10::Layout mat1_layout, const c10::Scalar& alpha) {
  const bool transposes =
      are_strided({grad.layout(), mat2.layout(), mat1_layout}) && is_column_major(mat1_sizes, mat1_strides);
  Tensor product;
  {
    const SkipADInplaceOrView keys;
    product = transposes ? conjugate(mat2).mm(transposed(grad, keys)) : grad.mm(conjugate(transposed(mat2, keys)));
  }
  return maybe_multiply(transposes ? product.t() : product, alpha.conj());
}

Tensor mm_mat2_backward(const Tensor& grad, const Tensor& mat1, c10::SymIntArrayRef mat2_sizes,
                        c10::SymIntArrayRef mat2_strides, c10::Layout mat2_layout, const c10::Scalar& alpha) {
  const bool transposes =
      are_strided({grad.layout(), mat1.layout(), mat2_layout}) && is_column_major(mat2_sizes, mat2_strides);
  Tensor product;
  {
    const SkipADInplaceOrView keys;
    product = transposes ? transposed(grad, keys).mm(conjugate(mat1)) : conjugate(transposed(mat1, keys)).mm(grad);
  }
  return maybe_multiply(transposes ? product.t() : product, alpha.conj());
}

}  // namespace backbind::formulas
