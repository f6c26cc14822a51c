#include "nodes/preconditions.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "nodes/memory.h"
#include "nodes/plain_sizes.h"

namespace backbind {

namespace {

bool in_range(int64_t dim, int64_t rank) {
  const int64_t limit = std::max<int64_t>(rank, 1);  // a scalar passes for a tensor of one dimension
  return -limit <= dim && dim < limit;
}

}  // namespace

int64_t gradient_rank(const variable_list& grads, size_t position) {
  constexpr int64_t kMost = 64;
  return grads[position].defined() ? grads[position].dim() : kMost;
}

void Preconditions::gradient_count(const variable_list& grads, size_t expected) const {
  TORCH_CHECK_VALUE(grads.size() == expected, node_, ": grads must have ", expected, " element", plural(expected),
                    " (None for an undefined gradient), got ", grads.size());
}

void Preconditions::list_length(const char* name, size_t length, size_t expected) const {
  TORCH_CHECK_VALUE(length == expected, node_, ": '", name, "' must have ", expected, " element", plural(expected),
                    ", got ", length);
}

void Preconditions::fixed_length(const char* name, size_t length, size_t expected, bool may_be_single,
                                 bool may_be_empty) const {
  if (length == expected || (length == 1 && may_be_single) || (length == 0 && may_be_empty)) return;
  list_length(name, length, expected);
}

void Preconditions::same_length(const char* first, size_t first_length, const char* second,
                                size_t second_length) const {
  TORCH_CHECK_VALUE(first_length == second_length, node_, ": '", first, "' and '", second,
                    "' must be equally long, got ", first_length, " and ", second_length, " elements");
}

void Preconditions::strides(const char* sizes, size_t sizes_length, const char* strides, size_t strides_length,
                            at::Layout layout) const {
  if (layout != at::kStrided && strides_length == 0) return;
  same_length(sizes, sizes_length, strides, strides_length);
}

void Preconditions::defined(const variable_list& grads, NamedTensor argument) const {
  if (argument.tensor.defined()) return;
  const bool any = std::any_of(grads.begin(), grads.end(), [](const at::Tensor& grad) { return grad.defined(); });
  TORCH_CHECK_VALUE(!any, node_, ": '", argument.name,
                    "' is None, but a gradient that needs_input_grad asks for is computed from it");
}

void Preconditions::positive(const char* name, const c10::SymInt& value) const {
  const auto plain = value.maybe_as_int();
  TORCH_CHECK_VALUE(!plain || *plain > 0, node_, ": '", name, "' must be greater than zero, got ", *plain);
}

void Preconditions::dim(const char* name, int64_t dim, int64_t rank) const {
  TORCH_CHECK_VALUE(in_range(dim, rank), node_, ": '", name, "' must be a dimension of a tensor with ", rank,
                    " dimension", plural(static_cast<size_t>(rank)), ", got ", dim);
}

void Preconditions::dim(const char* name, const std::vector<int64_t>& dims, int64_t rank) const {
  for (const int64_t one : dims) dim(name, one, rank);
}

void Preconditions::dim(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const {
  if (const auto plain = plain_sizes(dims)) dim(name, *plain, rank);
}

void Preconditions::dim(const char* name, const c10::OptionalArray<int64_t>& dims, int64_t rank) const {
  if (dims.list) dim(name, *dims.list, rank);
}

void Preconditions::dim(const char* name, std::optional<int64_t> dim, int64_t rank) const {
  if (dim) this->dim(name, *dim, rank);
}

void Preconditions::distinct_dims(const char* name, const std::vector<int64_t>& dims, int64_t rank) const {
  for (auto one = dims.begin(); one != dims.end(); ++one) {
    dim(name, *one, rank);
    TORCH_CHECK_VALUE(*one >= 0 && std::find(dims.begin(), one, *one) == one, node_, ": '", name,
                      "' must hold distinct dimensions counted from the front, got ", at::IntArrayRef(dims));
  }
}

void Preconditions::distinct_dims(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const {
  if (const auto plain = plain_sizes(dims)) distinct_dims(name, *plain, rank);
}

void Preconditions::transformed_dims(const char* name, const std::vector<c10::SymInt>& dims, int64_t rank) const {
  if (dims.size() == 1 && dims.front().maybe_as_int() == -1) return;
  distinct_dims(name, dims, rank);
}

void Preconditions::reduced(const char* name, at::IntArrayRef dims, bool keepdim, NamedTensor tensor) const {
  if (keepdim || !tensor.tensor.defined()) return;
  const int64_t rank = tensor.tensor.dim() + static_cast<int64_t>(dims.size());
  for (const int64_t one : dims) {
    TORCH_CHECK_VALUE(-rank <= one && one < rank, node_, ": '", tensor.name, "' with ", tensor.tensor.dim(),
                      " dimension", plural(static_cast<size_t>(tensor.tensor.dim())),
                      " cannot come from a reduction along the dimensions in '", name, "', ", dims);
  }
}

void Preconditions::reduced(const char* name, std::optional<int64_t> dim, bool keepdim, NamedTensor tensor) const {
  if (dim) reduced(name, at::IntArrayRef(*dim), keepdim, tensor);
}

void Preconditions::joined_along(const char* name, int64_t dim,
                                 const std::vector<std::vector<c10::SymInt>>& sizes) const {
  for (const auto& each : sizes) {
    if (each.size() == 1 && each[0].maybe_as_int() == 0) continue;
    const auto rank = static_cast<int64_t>(each.size());
    TORCH_CHECK_VALUE(rank > 0 && dim >= -rank && dim < rank, node_, ": '", name, "' is ", dim,
                      ", but a joined tensor has ", rank, " dimensions");
  }
}

void Preconditions::length_at_least(const char* name, size_t length, size_t least) const {
  TORCH_CHECK_VALUE(length >= least, node_, ": '", name, "' must have at least ", least, " element", plural(least),
                    ", got ", length);
}

void Preconditions::rank_at_least(NamedTensor argument, int64_t rank) const {
  if (!argument.tensor.defined()) return;
  TORCH_CHECK_VALUE(argument.tensor.dim() >= rank, node_, ": '", argument.name, "' must have at least ", rank,
                    " dimensions, got ", argument.tensor.dim());
}

void Preconditions::same_sizes(NamedTensor first, NamedTensor second) const {
  const auto left = plain_sizes(first.tensor);
  const auto right = plain_sizes(second.tensor);
  TORCH_CHECK_VALUE(!left || !right || *left == *right, node_, ": '", first.name, "' and '", second.name,
                    "' must have the same sizes, got ", at::IntArrayRef(*left), " and ", at::IntArrayRef(*right));
}

void Preconditions::gradient_sizes(const variable_list& grads, size_t position, NamedTensor result) const {
  same_sizes({"grads", grads[position]}, result);
}

void Preconditions::gradient_sizes(const variable_list& grads, size_t position, const char* name,
                                   c10::SymIntArrayRef sizes) const {
  const auto expected = plain_sizes(sizes);
  const auto actual = plain_sizes(grads[position]);
  TORCH_CHECK_VALUE(!expected || !actual || *expected == *actual, node_, ": the gradient must have the sizes that '",
                    name, "' gives, ", at::IntArrayRef(*expected), ", got ", at::IntArrayRef(*actual));
}

namespace {

// The tensor, if there, has memory for all its elements one behind the other, even where they do not lie so.
void check_memory_in_order(const char* node, NamedTensor argument) {
  const at::Tensor& tensor = argument.tensor;
  if (!has_memory(tensor) || tensor.is_contiguous()) return;
  const auto held = static_cast<int64_t>(tensor.storage().nbytes()) / tensor.element_size();
  TORCH_CHECK_VALUE(tensor.storage_offset() + tensor.numel() <= held, node, ": '", argument.name,
                    "' must have memory for its ", tensor.numel(), " elements one behind the other, got strides ",
                    tensor.strides());
}

}  // namespace

void Preconditions::batch_norm(const variable_list& grads, bool training, NamedTensor input,
                               std::initializer_list<NamedTensor> parameters,
                               std::initializer_list<NamedTensor> of_batch,
                               std::initializer_list<NamedTensor> running) const {
  if (!grads[0].defined()) return;
  gradient_sizes(grads, 0, input);
  rank_at_least(input, 2);
  for (const auto& one : training ? of_batch : running) {
    TORCH_CHECK_VALUE(one.tensor.defined(), node_, ": '", one.name, "' is None, but ",
                      training ? "the statistics of the batch are needed for training"
                               : "the running statistics are needed where there is no training");
  }
  const auto sizes = plain_sizes(input.tensor);
  if (!sizes) return;
  element_count((*sizes)[1], parameters);
  element_count((*sizes)[1], running);
  if (training) element_count((*sizes)[1], of_batch);
  // torch's kernel for channels that lie together takes the parameters for contiguous ones.
  for (const NamedTensor& one : parameters) check_memory_in_order(node_, one);
}

void Preconditions::element_count(const c10::SymInt& count, std::initializer_list<NamedTensor> tensors) const {
  const auto expected = count.maybe_as_int();
  if (!expected) return;
  for (const auto& one : tensors) {
    const auto actual = elements(one.tensor);
    TORCH_CHECK_VALUE(!actual || *actual == static_cast<uint64_t>(*expected), node_, ": '", one.name, "' must have ",
                      *expected, " element", plural(static_cast<size_t>(*expected)), ", got ", *actual);
  }
}

void Preconditions::layer_norm(NamedTensor input, c10::SymIntArrayRef shape,
                               std::initializer_list<NamedTensor> statistics,
                               std::initializer_list<NamedTensor> parameters) const {
  const auto sizes = plain_sizes(input.tensor);
  const auto inner = plain_sizes(shape);
  if (!sizes || !inner) return;
  TORCH_CHECK_VALUE(sizes->size() >= inner->size() && std::equal(inner->rbegin(), inner->rend(), sizes->rbegin()),
                    node_, ": the sizes of '", input.name, "' must end with the normalized shape ",
                    at::IntArrayRef(*inner), ", got ", at::IntArrayRef(*sizes));
  const at::IntArrayRef outer(sizes->data(), sizes->size() - inner->size());
  element_count(static_cast<int64_t>(product(outer)), statistics);
  element_count(static_cast<int64_t>(product(*inner)), parameters);
}

void Preconditions::repeated(const variable_list& grads, c10::SymIntArrayRef repeats, c10::SymIntArrayRef sizes) const {
  const auto times = plain_sizes(repeats);
  const auto input = plain_sizes(sizes);
  const auto grad = plain_sizes(grads[0]);
  if (!times || !input || !grad) return;
  const bool fits = times->size() >= input->size() && times->size() == grad->size();
  bool equal = fits;
  for (size_t i = 0; fits && i < grad->size(); ++i) {
    const size_t added = times->size() - input->size();
    const auto factor = static_cast<uint64_t>(i < added ? 1 : (*input)[i - added]);
    equal &= (*times)[i] >= 0 && static_cast<uint64_t>((*times)[i]) * factor == static_cast<uint64_t>((*grad)[i]);
  }
  TORCH_CHECK_VALUE(equal, node_, ": a tensor of sizes ", at::IntArrayRef(*input), " repeated ",
                    at::IntArrayRef(*times), " times cannot have a gradient of sizes ", at::IntArrayRef(*grad));
}

void Preconditions::expanded(const variable_list& grads, c10::SymIntArrayRef sizes) const {
  const at::Tensor& grad = grads[0];
  if (!grad.defined() || grad.is_nested()) return;
  bool fits = sizes.size() <= static_cast<size_t>(grad.dim());
  const auto from = plain_sizes(sizes);
  const auto to = plain_sizes(grad);
  if (fits && from && to) {
    fits = std::equal(from->rbegin(), from->rend(), to->rbegin(),
                      [](int64_t size, int64_t expanded) { return size == 1 || size == expanded; });
  }
  TORCH_CHECK_VALUE(fits, node_, ": a tensor of sizes ", sizes, " cannot be expanded to those of its gradient, ",
                    grad.sym_sizes());
}

void Preconditions::distances(const variable_list& grads, NamedTensor x1, NamedTensor x2, NamedTensor result) const {
  rank_at_least(x1, 2);
  rank_at_least(x2, 2);
  gradient_sizes(grads, 0, result);
  const auto left = plain_sizes(x1.tensor);
  const auto right = plain_sizes(x2.tensor);
  const auto between = plain_sizes(result.tensor);
  if (!left || !right || !between) return;
  const bool fits = between->size() >= 2 && left->back() == right->back() && between->end()[-2] == left->end()[-2] &&
                    between->back() == right->end()[-2];
  TORCH_CHECK_VALUE(fits, node_, ": 'result' of sizes ", at::IntArrayRef(*between),
                    " cannot hold the distances between points of sizes ", at::IntArrayRef(*left), " and ",
                    at::IntArrayRef(*right));
}

void Preconditions::pair_distances(const variable_list& grads, NamedTensor points, NamedTensor result) const {
  gradient_sizes(grads, 0, result);
  const auto sizes = plain_sizes(points.tensor);
  const auto pairs = plain_sizes(result.tensor);
  if (!sizes || !pairs) return;
  const bool fits =
      sizes->size() == 2 && pairs->size() == 1 && pairs->front() * 2 == sizes->front() * (sizes->front() - 1);
  // torch's kernel divides by their number.
  TORCH_CHECK_VALUE(sizes->empty() || sizes->front() > 0, node_, ": '", points.name, "' must hold at least one point");
  TORCH_CHECK_VALUE(fits, node_, ": '", result.name, "' of sizes ", at::IntArrayRef(*pairs),
                    " cannot hold the distances between points of sizes ", at::IntArrayRef(*sizes));
}

void Preconditions::halved(NamedTensor whole, NamedTensor half, int64_t dim) const {
  const auto sizes = plain_sizes(whole.tensor);
  const auto given = plain_sizes(half.tensor);
  if (!sizes || !given) return;
  const auto rank = static_cast<int64_t>(sizes->size());
  this->dim("dim", dim, rank);
  const auto axis = static_cast<size_t>(dim < 0 ? dim + rank : dim);
  std::vector<int64_t> expected = *sizes;
  if (rank > 0) expected[axis] /= 2;
  const bool is_even = rank > 0 && (*sizes)[axis] % 2 == 0;
  TORCH_CHECK_VALUE(is_even && expected == *given, node_, ": '", half.name, "' must have the sizes of '", whole.name,
                    "', but half as many along dimension ", dim, ", got ", at::IntArrayRef(*given), " and ",
                    at::IntArrayRef(*sizes));
}

void Preconditions::sizes(const char* name, c10::SymIntArrayRef sizes) const {
  for (const c10::SymInt& size : sizes) {
    const auto plain = size.maybe_as_int();
    TORCH_CHECK_VALUE(!plain || *plain >= 0, node_, ": '", name, "' must hold no negative size, got ", sizes);
  }
}

void Preconditions::attention(const variable_list& grads, NamedTensor query, NamedTensor key, NamedTensor value,
                              NamedTensor output, NamedTensor logsumexp) const {
  if (!grads[0].defined()) return;
  gradient_sizes(grads, 0, output);
  for (const auto& one : {query, key, value, output}) {
    if (!one.tensor.defined()) return;
    rank_at_least(one, 4);
  }
  const auto queries = plain_sizes(query.tensor);
  const auto keys = plain_sizes(key.tensor);
  const auto values = plain_sizes(value.tensor);
  const auto outputs = plain_sizes(output.tensor);
  if (!queries || !keys || !values || !outputs) return;
  const auto& [q, k, v, o] = std::tie(*queries, *keys, *values, *outputs);
  const bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && o.size() == 4 && k[0] == q[0] && v[0] == q[0] &&
                    k[3] == q[3] && k[1] == v[1] && k[2] == v[2] && o[0] == q[0] && o[1] == q[1] && o[2] == q[2] &&
                    o[3] == v[3];
  TORCH_CHECK_VALUE(fits, node_, ": queries, keys, values and output of sizes ", at::IntArrayRef(q), ", ",
                    at::IntArrayRef(k), ", ", at::IntArrayRef(v), " and ", at::IntArrayRef(o), " do not fit together");
  element_count(q[0] * q[1] * q[2], {logsumexp});
}

void Preconditions::gates(NamedTensor gates, int64_t count, NamedTensor state) const {
  const auto sizes = plain_sizes(gates.tensor);
  const auto one = plain_sizes(state.tensor);
  if (!sizes || !one) return;
  const bool fits =
      sizes->size() == 2 && one->size() == 2 && sizes->front() == one->front() && sizes->back() == count * one->back();
  TORCH_CHECK_VALUE(fits, node_, ": '", gates.name, "' of sizes ", at::IntArrayRef(*sizes), " is not ", count,
                    " matrices of the sizes of '", state.name, "', ", at::IntArrayRef(*one), ", side by side");
}

}  // namespace backbind
