#include "hooks/present.h"

namespace backbind {

std::vector<std::string> hooks_present(torch::autograd::Node& node, bool runs) {
  std::vector<std::string> kinds;
  if (!node.tensor_pre_hooks().empty()) kinds.emplace_back("tensor hook");
  if (!node.retains_grad_hooks().empty()) kinds.emplace_back("retained gradient");
  if (!node.pre_hooks().empty()) kinds.emplace_back("node pre-hook");
  if (node.tensor_post_acc_grad_hooks() != nullptr) kinds.emplace_back("post-accumulate-grad hook");
  if (runs && !node.post_hooks().empty()) kinds.emplace_back("node post-hook");
  return kinds;
}

}  // namespace backbind
