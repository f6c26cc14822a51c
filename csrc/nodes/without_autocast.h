// What keeps a functional operator pure: surroundings that would change its result are switched off while it runs.
#pragma once

#include <ATen/core/ivalue.h>

#include "nodes/binding.h"

namespace backbind {

// Runs `apply`, a functional backward of `binding`, with autocast off. Grad mode stays as it is: it decides whether the
// result has a graph.
//
// An internal assertion of torch that fails here means that the arguments do not fit together; it is raised as a
// RuntimeError that says so.
variable_list run_without_autocast(const Binding& binding, Binding::Apply apply, const variable_list& grads,
                                   const ivalue_list& arguments);

}  // namespace backbind
