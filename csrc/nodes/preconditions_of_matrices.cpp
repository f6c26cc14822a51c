#include <c10/util/Exception.h>

#include <algorithm>
#include <vector>

#include "nodes/plain_sizes.h"
#include "nodes/preconditions.h"

namespace backbind {

using Sizes = std::vector<int64_t>;

void Preconditions::sparse_reduction(const variable_list& grads, NamedTensor matrix, NamedTensor other,
                                     std::string_view reduce, NamedTensor places) const {
  const auto grad = plain_sizes(grads[0]);
  const auto left = plain_sizes(matrix.tensor);
  const auto right = plain_sizes(other.tensor);
  if (!grad || !left || !right) return;
  const bool fits = left->size() == 2 && right->size() == 2 && left->back() == right->front() &&
                    at::IntArrayRef(*grad).equals({left->front(), right->back()});
  TORCH_CHECK_VALUE(fits, node_, ": the gradient must have the sizes of the product of '", matrix.name, "' and '",
                    other.name, "', got ", at::IntArrayRef(*grad), " for ", at::IntArrayRef(*left), " and ",
                    at::IntArrayRef(*right));
  if (reduce == "sum" || reduce == "mean") return;
  defined(grads, places);
  gradient_sizes(grads, 0, places);
  if (matrix.tensor.layout() == at::kSparseCsr) values(places, 0, matrix.tensor._nnz() + 1);
}

void Preconditions::pivots(NamedTensor pivots, NamedTensor lu) const {
  const auto matrices = plain_sizes(lu.tensor);
  if (!matrices || matrices->size() < 2) return;
  const int64_t rows = matrices->end()[-2];
  if (const auto given = plain_sizes(pivots.tensor)) {
    Sizes expected(matrices->begin(), matrices->end() - 2);
    expected.push_back(std::min(rows, matrices->back()));
    TORCH_CHECK_VALUE(*given == expected, node_, ": '", pivots.name, "' must have sizes ", at::IntArrayRef(expected),
                      " for the matrices '", lu.name, "' of sizes ", at::IntArrayRef(*matrices), ", got ",
                      at::IntArrayRef(*given));
  }
  values(pivots, 1, rows + 1);
}

void Preconditions::weight_norm(const variable_list& grads, NamedTensor v, int64_t dim, NamedTensor g,
                                NamedTensor norms) const {
  gradient_sizes(grads, 0, v);
  const auto sizes = plain_sizes(v.tensor);
  if (!sizes) return;
  const auto last = static_cast<int64_t>(sizes->size()) - 1;
  TORCH_CHECK_VALUE(last >= 0 && (dim == 0 || dim == last), node_,
                    ": 'dim' must be the first or the last dimension of '", v.name, "' with ", sizes->size(),
                    " dimensions, got ", dim);
  element_count((*sizes)[static_cast<size_t>(dim)], {g, norms});
}

}  // namespace backbind
