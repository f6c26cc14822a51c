// Whether a live graph has the structure of a plan: the guard of a replay. The plan guides the walk, so that no table
// of nodes is needed, and nothing is looked at that the plan does not depend on.
#pragma once

#include <string>

#include "capture/plan.h"
#include "capture/request.h"

namespace backbind {

// Where a live graph departs from a plan.
struct Mismatch {
  // The step whose node differs; the number of steps where the roots or the inputs do.
  size_t step = 0;
  const char* what = "";
  // The node that was found, where it is the wrong one.
  torch::autograd::Node* found = nullptr;

  // In words: "step 17: MmBackward0 where the plan has AddmmBackward0".
  std::string describe(const Plan& plan) const;
};

class Matcher {
 public:
  // Fills `nodes` in and returns true, or says in `mismatch` why not.
  bool match(const Plan& plan, const Request& request, LiveNodes& nodes, Mismatch& mismatch);

 private:
  // Whether `edge` leads where `target` says; the node that it leads to first is put into `nodes`.
  bool follows(LiveNodes& nodes, const Plan& plan, const Target& target, const Request& request,
               const torch::autograd::Edge& edge);
  // Whether the node was met for the first time.
  bool is_new(torch::autograd::Node* node);

  // Nodes without a sequence number of their own, in a table of open addressing whose size is a power of two.
  std::vector<torch::autograd::Node*> met_;
};

}  // namespace backbind
