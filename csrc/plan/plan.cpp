#include "plan/plan.h"

#include "plan/bytes_of.h"

namespace backbind {

size_t Plan::bytes() const {
  return sizeof(Plan) + bytes_of(steps) + bytes_of(next_edges) + bytes_of(needs_input_grad) + bytes_of(returned_grads) +
         bytes_of(roots) + bytes_of(inputs) + bytes_of(ranking) + bytes_of(node_types) + bytes_of(operators);
}

}  // namespace backbind
