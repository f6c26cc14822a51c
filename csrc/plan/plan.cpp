#include "plan/plan.h"

namespace backbind {

namespace {

template <class T>
size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

size_t Plan::bytes() const {
  return sizeof(Plan) + bytes_of(steps) + bytes_of(next_edges) + bytes_of(needs_input_grad) + bytes_of(returned_grads) +
         bytes_of(roots) + bytes_of(inputs) + bytes_of(ranking) + bytes_of(node_types) + bytes_of(operators);
}

}  // namespace backbind
