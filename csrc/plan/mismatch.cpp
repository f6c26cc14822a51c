#include "plan/mismatch.h"

#include "plan/node_type_name.h"

namespace backbind {

namespace {

// What is different about the node, to stand behind its name.
const char* of_node(Difference difference) {
  switch (difference) {
    case Difference::kGradientCount:
      return "whose forward returns another number of tensors than before";
    case Difference::kEdgeCount:
      return "whose forward takes another number of tensors than before";
    case Difference::kEdge:
      return "whose forward takes a tensor from another place than before";
    case Difference::kNoLongerRequiresGrad:
      return "whose forward takes a tensor that does not require grad, and did before";
    case Difference::kNewlyRequiresGrad:
      return "whose forward takes a tensor that requires grad, and did not before";
    case Difference::kNeeded:
      return "whose forward takes a tensor on the way to inputs=, and did not before, or the other way round";
    case Difference::kOrder:
      return "whose forward ran before others that it ran behind before, or the other way round";
    case Difference::kShared:
      return "once where there were two: one tensor is used in the place of two different ones";
    default:
      return "";
  }
}

}  // namespace

std::string Mismatch::describe() const {
  switch (difference) {
    case Difference::kRoots:
      return "the tensors that backward() was called on are the same ones, or depend on one another, in another way";
    case Difference::kInputs:
      return "the tensors in inputs= are others, or in another order";
    case Difference::kRanking:
      return "the forward ran the same operations in another order, or in several threads that took other turns";
    case Difference::kTooLarge:
      return "the graph is so large that its plan is not kept";
    case Difference::kNodeType:
      return "step " + std::to_string(step) + ": " + node_type_name(*found) + " where " + node_type_name(*planned) +
             " was";
    default:
      return "step " + std::to_string(step) + ": " + node_type_name(*planned) + ", " + of_node(difference);
  }
}

}  // namespace backbind
