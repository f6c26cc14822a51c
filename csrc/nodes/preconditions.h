// What must hold for the arguments of a functional backward together. A live node never breaks these, because its
// forward checked them; a formula that is called with values from anywhere would read past the end of a list or of a
// tensor, or divide by zero. Every check raises ValueError in the words of the caller.
//
// Sizes that are symbols, and sizes of nested tensors, are left to the operators that meet them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace backbind {

using torch::autograd::variable_list;

// One named argument.
struct NamedTensor {
  const char* name;
  const at::Tensor& tensor;
};

// How many dimensions the gradient at `position` has; where it is undefined, as many as a tensor may have.
int64_t gradient_rank(const variable_list& grads, size_t position);

// A number for each dimension, or one for all.
class PerDimension {
 public:
  PerDimension(int64_t all) : all_(all) {}                             // NOLINT(google-explicit-constructor)
  PerDimension(c10::SymIntArrayRef each) : each_(each) {}              // NOLINT(google-explicit-constructor)
  PerDimension(const std::vector<c10::SymInt>& each) : each_(each) {}  // NOLINT(google-explicit-constructor)

  // The number for a dimension; nothing where it is a symbol. A list of one stands for all.
  std::optional<int64_t> of(size_t dimension) const {
    if (all_.has_value()) return all_;
    if (each_.size() == 1) return each_.front().maybe_as_int();
    return dimension < each_.size() ? each_[dimension].maybe_as_int() : std::nullopt;
  }
  // Whether there is one for each of `count` dimensions.
  bool fits(size_t count) const { return all_.has_value() || each_.size() == 1 || each_.size() == count; }

 private:
  std::optional<int64_t> all_;
  c10::SymIntArrayRef each_;
};

// The checks of one call.
class Preconditions {
 public:
  explicit Preconditions(const char* node) : node_(node) {}

  // `grads` has `expected` elements.
  void gradient_count(const variable_list& grads, size_t expected) const;
  // The list argument `name` has `expected` elements.
  void list_length(const char* name, size_t length, size_t expected) const;
  // The list argument `name` has one of the lengths that the forward's `name: int[expected]` may have.
  void fixed_length(const char* name, size_t length, size_t expected, bool may_be_single, bool may_be_empty) const;
  // Two lists that belong together are equally long.
  void same_length(const char* first, size_t first_length, const char* second, size_t second_length) const;
  // The sizes and strides of one tensor are equally long; a tensor of another layout may be without strides.
  void strides(const char* sizes, size_t sizes_length, const char* strides, size_t strides_length,
               at::Layout layout) const;
  // The tensor is there, if there is a gradient at all.
  void defined(const variable_list& grads, NamedTensor argument) const;
  // The integer is greater than zero.
  void positive(const char* name, const c10::SymInt& value) const;
  // A dimension, or each of several, lies in a tensor of `rank` dimensions.
  void dim(const char* name, int64_t dim, int64_t rank) const;
  void dim(const char* name, const std::vector<int64_t>& dims, int64_t rank) const;
  void dim(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const;
  void dim(const char* name, const c10::OptionalArray<int64_t>& dims, int64_t rank) const;
  void dim(const char* name, std::optional<int64_t> dim, int64_t rank) const;
  // Each of the dimensions is counted from the front, and none comes twice.
  void distinct_dims(const char* name, const std::vector<int64_t>& dims, int64_t rank) const;
  void distinct_dims(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const;
  // The same, or -1 alone: torch transforms the last dimension of a complex tensor under that name too.
  void transformed_dims(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const;
  // The tensor, if there, is what a reduction along `dims` leaves: with the reduced dimensions put back each of `dims`
  // is one of its dimensions.
  void reduced(const char* name, at::IntArrayRef dims, bool keepdim, NamedTensor tensor) const;
  void reduced(const char* name, std::optional<int64_t> dim, bool keepdim, NamedTensor tensor) const;
  // The list has at least `least` elements.
  void length_at_least(const char* name, size_t length, size_t least) const;
  // Each of the sizes has the dimension along which tensors of these sizes are joined. A tensor of size 0, which cat
  // leaves out, needs none.
  void joined_along(const char* name, int64_t dim, const std::vector<std::vector<c10::SymInt>>& sizes) const;
  // The tensor has at least `rank` dimensions.
  void rank_at_least(NamedTensor argument, int64_t rank) const;
  // Both tensors, if there, have the same sizes.
  void same_sizes(NamedTensor first, NamedTensor second) const;
  // The gradient at `position`, if there, has the sizes of the result that it belongs to, or those given as `name`.
  void gradient_sizes(const variable_list& grads, size_t position, NamedTensor result) const;
  void gradient_sizes(const variable_list& grads, size_t position, const char* name, c10::SymIntArrayRef sizes) const;
  // `grads[0]` has the sizes of `input`; each of the other tensors, if there, holds one value for each channel (the
  // dimension 1) of `input`. The statistics that the formula reads, those of the batch while training and otherwise
  // the running ones, must be there.
  void batch_norm(const variable_list& grads, bool training, NamedTensor input,
                  std::initializer_list<NamedTensor> parameters, std::initializer_list<NamedTensor> of_batch,
                  std::initializer_list<NamedTensor> running) const;
  // Each tensor, if there, has `count` elements.
  void element_count(const c10::SymInt& count, std::initializer_list<NamedTensor> tensors) const;
  // `input` ends with the sizes `shape`; the `statistics`, if there, hold one value for each of its other positions,
  // and each of the `parameters`, if there, has as many elements as `shape`.
  void layer_norm(NamedTensor input, c10::SymIntArrayRef shape, std::initializer_list<NamedTensor> statistics,
                  std::initializer_list<NamedTensor> parameters) const;
  // The gradient has the sizes that repeating a tensor of `sizes` gives.
  void repeated(const variable_list& grads, c10::SymIntArrayRef repeats, c10::SymIntArrayRef sizes) const;
  // The gradient has sizes that a tensor of `sizes` can be expanded to.
  void expanded(const variable_list& grads, c10::SymIntArrayRef sizes) const;
  // `x1` and `x2` are lists of points, and `result` holds the distance of each from each.
  void distances(const variable_list& grads, NamedTensor x1, NamedTensor x2, NamedTensor result) const;
  // `result` holds the distance of each of the `points`, of which there is one at least, from each other one.
  void pair_distances(const variable_list& grads, NamedTensor points, NamedTensor result) const;
  // The sizes of scaled dot product attention: queries [batch, heads, positions, features], keys and values
  // [batch, heads, others, features], an output like the queries and one logsumexp for each of its positions.
  void attention(const variable_list& grads, NamedTensor query, NamedTensor key, NamedTensor value, NamedTensor output,
                 NamedTensor logsumexp) const;
  // `gates` are `count` matrices of the sizes of `state`, one beside the other.
  void gates(NamedTensor gates, int64_t count, NamedTensor state) const;
  // The number lies between two others, both included.
  void between(const char* name, int64_t value, int64_t least, int64_t most) const;
  // The elements of the tensor, if there, lie one behind the other in order.
  void contiguous(NamedTensor tensor) const;
  // Both tensors, if there, have as many dimensions, and the same sizes but for the last `trailing` ones.
  void leading_sizes(NamedTensor first, NamedTensor second, int64_t trailing) const;
  // Each integer in the tensor, if there, is at least `least` and less than `end`. Looks at the numbers of dense
  // tensors in the memory of the CPU only.
  void values(NamedTensor tensor, int64_t least, const c10::SymInt& end) const;
  // `result` is what a pooling over the last `spatial` dimensions of `input` gives, or its gradient, so that `input`
  // has a position along each if it has any; `indices`, where the pooling gives them, say which of the positions of
  // `input` were taken.
  void pooled(const variable_list& grads, int64_t spatial, NamedTensor input, NamedTensor indices) const;
  // The gradient has the sizes of `input` with `padding` added: a pair of numbers for each dimension from the last on.
  void padded(const variable_list& grads, c10::SymIntArrayRef padding, NamedTensor input) const;
  // `samples`, or their gradient, have the sizes of `input` [batch, channels, ...] taken at the points of `grid`
  // [batch, ..., n].
  void sampled(NamedTensor samples, NamedTensor input, NamedTensor grid) const;
  // The points of `grid` are finite, and so are the places of `input` that they mean, where a kernel of the CPU takes
  // them for places without a look: interpolation between neighbours, with padding by border or reflection.
  void points(NamedTensor grid, NamedTensor input, int64_t interpolation, int64_t padding) const;
  // The gradient of a loss over the rows of `input`: one number, or one for each row where there is no `reduction`.
  void row_loss(const variable_list& grads, int64_t reduction, NamedTensor input) const;
  // Such a loss with one class for each row, and `weight` for each class.
  void margin_loss(const variable_list& grads, int64_t reduction, NamedTensor input, NamedTensor target,
                   NamedTensor weight) const;
  // Such a loss with a list of classes for each row, ended by -1, and whether each class is among them.
  void multilabel_loss(const variable_list& grads, int64_t reduction, NamedTensor input, NamedTensor target,
                       NamedTensor is_target) const;
  // Each target is a class, of which dimension `dim` of `input` has one at each place, or the one that is ignored.
  // Counted from the end where negative.
  void classes(NamedTensor target, NamedTensor input, int64_t dim, const c10::SymInt& ignored) const;
  // `data` falls into segments along `axis`, as `lengths` or `offsets` say; the gradient belongs to `result`.
  void segments(const variable_list& grads, NamedTensor data, int64_t axis, NamedTensor lengths, NamedTensor offsets,
                NamedTensor result) const;
  // The sizes of the connectionist temporal classification loss: `log_probs` [time, batch, classes], one length for
  // each sequence, one loss for each and `alphas` [batch, time, more than twice the longest target].
  void ctc(const variable_list& grads, NamedTensor log_probs, NamedTensor targets,
           const std::vector<int64_t>& input_lengths, const std::vector<int64_t>& target_lengths, int64_t blank,
           NamedTensor losses, NamedTensor alphas) const;
  void ctc(const variable_list& grads, NamedTensor log_probs, NamedTensor targets, const at::Tensor& input_lengths,
           const at::Tensor& target_lengths, int64_t blank, NamedTensor losses, NamedTensor alphas) const;
  // Bags of rows of a matrix, one for each row of the gradient: `bag_of_index` says to which each of the `indices`
  // belongs. Where it is empty the kernel makes it anew from the `offsets` at which bags begin.
  void bags(const variable_list& grads, NamedTensor indices, NamedTensor offsets, NamedTensor bag_of_index) const;
  // What the gradient of the matrix, which has `rows` rows, takes besides: the sizes of bags, for each element of the
  // gradient the row that the maximum came from, and a weight for each index.
  void bag_gradient(const variable_list& grads, NamedTensor indices, const c10::SymInt& rows, int64_t mode,
                    NamedTensor bag_sizes, NamedTensor maxima, NamedTensor weights) const;
  // The gradient of an image [batch, channels, height, width] can be brought to `sizes` with these scales by a kernel
  // that reads around each place up to `reach` pixels (more where it makes the image smaller) and does not look whether
  // the place lies in the image. Sizes alone always fit.
  void antialiased(const variable_list& grads, c10::SymIntArrayRef sizes, bool align_corners,
                   std::optional<double> scale_of_height, std::optional<double> scale_of_width, int64_t reach) const;
  // `gradient` is that of the convolution of `input`, with or without a batch, by `weight`.
  void convolution(NamedTensor gradient, NamedTensor input, NamedTensor weight, const PerDimension& stride,
                   const PerDimension& padding, const PerDimension& dilation, bool transposed,
                   const PerDimension& output_padding, const c10::SymInt& groups) const;
  // `half` has the sizes of `whole`, but half as many along `dim`.
  void halved(NamedTensor whole, NamedTensor half, int64_t dim) const;
  // No size is negative.
  void sizes(const char* name, c10::SymIntArrayRef sizes) const;
  // The numbers of the tensor can be read from the memory of the CPU, as a kernel does that does not ask.
  void readable(NamedTensor tensor) const;
  // The indices are those of rows of `matrix`.
  void rows(NamedTensor indices, NamedTensor matrix) const;
  // The gradient has the sizes of the product of `matrix`, which is sparse, and `other`; where a product takes the
  // greatest or smallest summand, `places` tell which of the values of `matrix` that was, or how many there are where
  // there was none.
  void sparse_reduction(const variable_list& grads, NamedTensor matrix, NamedTensor other, std::string_view reduce,
                        NamedTensor places) const;
  // `pivots` are those of the matrices in `lu`, counted from one: as many as their shorter side has.
  void pivots(NamedTensor pivots, NamedTensor lu) const;
  // `norms` and `g` hold one number for each slice of `v` along `dim`, which is its first or last dimension.
  void weight_norm(const variable_list& grads, NamedTensor v, int64_t dim, NamedTensor g, NamedTensor norms) const;
  // The gradient has the sizes that unfolding a tensor of `sizes` gives.
  void unfolded(const variable_list& grads, c10::SymIntArrayRef sizes, int64_t dim, int64_t size, int64_t step) const;

 private:
  const char* node_;
};

}  // namespace backbind
