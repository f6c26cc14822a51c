// Helpers that formulas of derivatives.yaml call and that torch keeps to itself: each has the name, the arguments and
// the meaning that the formulas rely on, and gives the bits, the memory layout and, where a graph is built, the graph
// that torch's own gives (tests/oracle compares them through the node structs). codegen/model/helpers.py lists them.
//
// They differentiate, trace and batch as the operators do that they are made of.
#pragma once

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Layout.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/OptionalArrayRef.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

namespace backbind::formulas {

// Of complex numbers: a real input has a real gradient, whatever the numbers that it was combined with.
at::Tensor handle_r_to_c(c10::ScalarType input_type, at::Tensor gradient);

// `tensor * factor`, or the tensor itself where the factor is one.
at::Tensor maybe_multiply(const at::Tensor& tensor, const c10::Scalar& factor);

// Of `self * other`, for self.
at::Tensor mul_tensor_backward(const at::Tensor& grad, const at::Tensor& other, c10::ScalarType self_type);
at::Tensor mul_tensor_backward(const at::Tensor& grad, const c10::Scalar& other, c10::ScalarType self_type);

// Of `self / other`, for self and for other; zero if the quotient is rounded.
at::Tensor div_tensor_self_backward(const at::Tensor& grad, const at::Tensor& other, c10::ScalarType self_type,
                                    const std::optional<std::string_view>& rounding_mode = std::nullopt);
at::Tensor div_tensor_self_backward(const at::Tensor& grad, const c10::Scalar& other, c10::ScalarType self_type,
                                    const std::optional<std::string_view>& rounding_mode = std::nullopt);
at::Tensor div_tensor_other_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& other,
                                     const std::optional<std::string_view>& rounding_mode = std::nullopt);

// Of `self ** exponent`, for self.
at::Tensor pow_backward(const at::Tensor& grad, const at::Tensor& self, const c10::Scalar& exponent);

// Of `alpha * (mat1 @ mat2)`: gradients in the memory layout of the matrix that they are for.
at::Tensor mm_mat1_backward(const at::Tensor& grad, const at::Tensor& mat2, c10::SymIntArrayRef mat1_sizes,
                            c10::SymIntArrayRef mat1_strides, c10::Layout mat1_layout, const c10::Scalar& alpha);
at::Tensor mm_mat2_backward(const at::Tensor& grad, const at::Tensor& mat1, c10::SymIntArrayRef mat2_sizes,
                            c10::SymIntArrayRef mat2_strides, c10::Layout mat2_layout, const c10::Scalar& alpha);

// Of `self.permute(dims)`.
at::Tensor permute_backwards(const at::Tensor& grad, at::IntArrayRef dims);

// Of squeeze: brings back the dimensions of size one, all of them or those named.
at::Tensor unsqueeze_to(const at::Tensor& grad, c10::SymIntArrayRef sizes);
at::Tensor unsqueeze_to(const at::Tensor& grad, int64_t dim, c10::SymIntArrayRef sizes);
at::Tensor unsqueeze_to(const at::Tensor& grad, at::IntArrayRef dims, c10::SymIntArrayRef sizes);

// Of `self.sum(dims, keepdim)`; no dims are all.
at::Tensor sum_backward(const at::Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims, bool keepdim);

// Of `self.mean(dims, keepdim)`, for a self of `numel` elements; no dims are all.
at::Tensor mean_backward(const at::Tensor& grad, c10::SymIntArrayRef sizes, at::OptionalIntArrayRef dims,
                         const c10::SymInt& numel, bool keepdim);

// Of `self[start:end:step]` along a dimension.
at::Tensor slice_backward_wrapper(const at::Tensor& grad, c10::SymIntArrayRef sizes, int64_t dim,
                                  const std::optional<c10::SymInt>& start, const std::optional<c10::SymInt>& end,
                                  const c10::SymInt& step);

// Of pad with a constant.
at::Tensor constant_pad_nd_backward(const at::Tensor& grad, c10::SymIntArrayRef pad);

// Of split and unbind: what the parts that got no gradient stand for is zero.
at::Tensor split_backward(std::span<const at::Tensor> grads, const c10::SymInt& split_size, int64_t dim,
                          c10::SymIntArrayRef sizes, const at::TensorOptions& options);
at::Tensor split_with_sizes_backward(std::span<const at::Tensor> grads, c10::SymIntArrayRef split_sizes, int64_t dim,
                                     c10::SymIntArrayRef sizes, const at::TensorOptions& options);
at::Tensor unbind_backward(std::span<const at::Tensor> grads, int64_t dim);

// Of cat and stack, for each of the tensors, which had these sizes and dtypes.
std::vector<at::Tensor> cat_tensors_backward(const at::Tensor& grad, const std::vector<std::vector<c10::SymInt>>& sizes,
                                             const std::vector<c10::ScalarType>& dtypes, int64_t dim);
std::vector<at::Tensor> stack_tensors_backward(const at::Tensor& grad, int64_t dim,
                                               const std::vector<c10::ScalarType>& dtypes);

// Of `self[indices]`, added to `zeros`, which are self's size and nobody else's.
at::Tensor index_backward(const at::Tensor& zeros, const c10::List<std::optional<at::Tensor>>& indices,
                          const at::Tensor& grad);

// Of a copy to another dtype or device, for a self with these options.
at::Tensor _to_copy_backward(const at::Tensor& grad, const at::TensorOptions& self_options);

// Of clamp with numbers or tensors, either of which may be missing: for self, and for the bounds that are tensors.
at::Tensor clamp_backward(const at::Tensor& grad, const at::Tensor& self, const std::optional<c10::Scalar>& min,
                          const std::optional<c10::Scalar>& max);
at::Tensor clamp_backward(const at::Tensor& grad, const at::Tensor& self, const at::Tensor& min, const at::Tensor& max);
std::tuple<at::Tensor, at::Tensor> clamp_backward_min_max(const at::Tensor& grad, const at::Tensor& self,
                                                          const at::Tensor& min, const at::Tensor& max,
                                                          const std::array<bool, 2>& grad_input_mask);

// Of silu, of operators that can be differentiated again.
at::Tensor infinitely_differentiable_silu_backward(const at::Tensor& grad, const at::Tensor& self);

}  // namespace backbind::formulas
