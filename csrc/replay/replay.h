// The native backend: runs a plan as one flat loop over the nodes of a live graph.
#pragma once

#include "capture/plan.h"
#include "capture/request.h"
#include "capture/slow_path.h"

namespace backbind {

// Runs the backward of `request`, whose graph has the structure of `plan` and these `nodes`, and returns the gradients
// that are handed out. What a caller can see is what the engine would have done: values, hooks and their order, what is
// released and when, errors.
variable_list replay(const Plan& plan, const LiveNodes& nodes, const Request& request, SlowPathSteps& slow_path);

}  // namespace backbind
