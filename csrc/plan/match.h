// Whether a live graph has the structure of a plan: the guard of a replay. The plan guides the walk, so that no table
// of nodes is needed, and nothing is looked at that the plan does not depend on.
#pragma once

#include <optional>

#include "plan/mismatch.h"
#include "plan/node_numbers.h"
#include "plan/plan.h"
#include "plan/request.h"

namespace backbind {

class Matcher {
 public:
  // Fills `nodes` in and returns true, or says in `mismatch` why not.
  bool match(const Plan& plan, const Request& request, LiveNodes& nodes, Mismatch& mismatch);

 private:
  // Puts the node that `edge` leads to into `nodes` if it is the first that leads there. Returns how the edge differs
  // from where `planned` says, or nothing.
  static std::optional<Difference> follow(LiveNodes& nodes, const InputRef& planned, const Request& request,
                                          const torch::autograd::Edge& edge);
  // Whether the sequence numbers have the order that the plan says.
  static bool has_ranking(const Plan& plan, const LiveNodes& nodes);
  // The nodes whose sequence numbers do not tell them apart.
  NodeNumbers met_;
};

}  // namespace backbind
